"""Hold the still parts of a report page: its style, its tiny script, and the policy over both.

The policy lets exactly these two run, by their hashes, and loads nothing from anywhere. Text from
an event that somehow became markup would still do nothing.
"""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --plus: #1a7f37; --minus: #cf222e;
  --dot: #57606a; --warn: #9a6700 }
@media (prefers-color-scheme: dark) {
  :root { --plus: #4ac26b; --minus: #ff7b72; --dot: #8b949e; --warn: #d29922 } }
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif }
header { padding: 1rem 1.5rem; border-bottom: 1px solid var(--line) }
h1 { font-size: 1.2rem; margin: 0 } h2 { font-size: 1rem; margin: 0 }
p { margin: .25rem 0 } code, pre, .mono { font: 13px/1.5 ui-monospace, monospace }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; padding: .6rem;
  background: var(--soft); border-radius: 6px; max-height: 28rem; overflow: auto }
svg { width: 100%; height: 34px; display: block; margin-top: .5rem; overflow: visible }
svg line { stroke: var(--line) } svg circle { fill: var(--dot) }
svg .error, svg .critical { fill: var(--minus) } svg .warning { fill: var(--warn) }
svg .here { stroke: currentColor; stroke-width: 3 }
main { display: grid; grid-template-columns: minmax(15rem, 24rem) 1fr; align-items: start }
nav { border-right: 1px solid var(--line); max-height: 80vh; overflow: auto; position: sticky;
  top: 0 }
nav ol { list-style: none; margin: 0; padding: 0 }
nav a { display: block; padding: .35rem 1rem; color: inherit; text-decoration: none;
  border-bottom: 1px solid var(--soft); overflow-wrap: anywhere }
nav a:hover, nav .here { background: var(--soft) }
nav .here { box-shadow: inset 3px 0 currentColor }
nav small { opacity: .7 }
article { padding: 1rem 1.5rem; border-bottom: 1px solid var(--line) }
.stepping article { display: none } .stepping article.here { display: block }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; overflow-wrap: anywhere;
  border-bottom: 1px solid var(--soft) }
td:first-child { width: 1.5rem; font-weight: bold } th { width: 9rem }
.pointer { width: 30%; min-width: 7rem }
.added td:first-child { color: var(--plus) } .removed td:first-child { color: var(--minus) }
del { color: var(--minus) } ins { color: var(--plus); text-decoration: none }
.keys { opacity: .7; font-size: .85rem } kbd { border: 1px solid var(--line); padding: 0 .3em }
@media (max-width: 50rem) { main { display: block } nav { max-height: 30vh } }
@media print { nav, .keys { display: none } .stepping article { display: block } }
"""

SCRIPT = """
"use strict";
const all = (q) => Array.from(document.querySelectorAll(q));
const scenes = all("article"), links = all("nav a"), dots = all("svg circle");
let here = 0;
function show(n) {
  if (!scenes.length) return;
  here = Math.max(0, Math.min(scenes.length - 1, n));
  for (const list of [scenes, links, dots])
    list.forEach((item, at) => item.classList.toggle("here", at === here));
  links.forEach((link, at) => at === here ? link.setAttribute("aria-current", "step")
    : link.removeAttribute("aria-current"));
  links[here].scrollIntoView({ block: "nearest" });
  try { history.replaceState(null, "", "#" + scenes[here].id); } catch { /* a sandboxed frame */ }
}
function from() {
  const at = scenes.findIndex((scene) => "#" + scene.id === location.hash);
  show(at >= 0 ? at : Number(document.body.dataset.focus) || 0);
}
document.body.classList.add("stepping");
addEventListener("hashchange", from);
addEventListener("keydown", (key) => {
  if (key.ctrlKey || key.metaKey || key.altKey) return;
  const to = { ArrowRight: here + 1, n: here + 1, ArrowLeft: here - 1, p: here - 1,
    Home: 0, End: scenes.length - 1 }[key.key];
  if (to !== undefined) { key.preventDefault(); show(to); }
});
from();
"""


def policy() -> str:
    """What the page may do: show itself, and nothing else."""
    style, script = _digest(STYLE), _digest(SCRIPT)
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
