"""Describe the steps of a workflow: one frozen model for each kind, told apart by `type`.

    function    a registered Python handler, in the worker          input: the parameters
    subprocess  a registered Python handler, in a process apart     input: the parameters
    spark       a registered Python handler, given the session      input: the parameters
    service     an HTTP request to a registered service             input: {request, capture…}
    webhook     a signed POST to a URL                              input: {url, body, …}
    airflow     a DAG run in Airflow, launched and followed         input: {dagId, conf, …}
    fanout      one template step for every item of a list          (its children have inputs)

`input_template()` becomes the input once its `{{ … }}` are filled in (`params`); `slug` is the
handler or service that the executor looks up. Secrets are named, never written.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.envelope.envelope import JsonObject
from penstock.workflows.forms import (
    AnyJson,
    AnyObject,
    Form,
    Handler,
    Name,
    SharedName,
    Slug,
    StepId,
)

DEPENDENCIES_MAX = 25
FANOUT_ITEMS_DEFAULT, FANOUT_ITEMS_MAX = 100, 10_000
FANOUT_CONCURRENCY_DEFAULT, FANOUT_CONCURRENCY_MAX = 10, 1_000
TIMEOUT_MS_MIN, TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX = 1_000, 300_000, 86_400_000
DELAY_MS_MAX = 86_400_000


class Kind(StrEnum):
    """What a step does; the word under `type`."""

    FUNCTION = "function"
    SUBPROCESS = "subprocess"
    SPARK = "spark"
    SERVICE = "service"
    WEBHOOK = "webhook"
    AIRFLOW = "airflow"
    FANOUT = "fanout"


class RetryPolicy(Form):
    """How often a failing step is tried, and how long it waits in between."""

    max_attempts: int = Field(default=3, ge=1, le=10)
    strategy: Literal["none", "fixed", "exponential"] = "exponential"
    initial_delay_ms: int = Field(default=5_000, ge=0, le=DELAY_MS_MAX)
    max_delay_ms: int = Field(default=1_800_000, ge=0, le=DELAY_MS_MAX)
    jitter: Literal["none", "full", "equal"] = "equal"

    @model_validator(mode="after")
    def _delays_fit(self) -> RetryPolicy:
        if self.initial_delay_ms > self.max_delay_ms:
            raise PydanticCustomError(
                "delays", "expected initialDelayMs up to maxDelayMs, found more"
            )
        return self


class SecretRef(Form):
    """A header's value that is looked up when the request is made."""

    secret: Name


class Request(Form):
    """An HTTP request to a service; every text in it may hold templates."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    path: str = Field(default="/", pattern=r"^/", max_length=2_000)
    headers: dict[str, str | SecretRef] = Field(default_factory=dict, max_length=50)
    query: dict[str, AnyJson] = Field(default_factory=dict, max_length=50)
    body: AnyJson = None


class _Step(Form):
    id: StepId
    name: Name | None = None
    depends_on: list[StepId] = Field(default_factory=list, max_length=DEPENDENCIES_MAX)
    store_result_as: SharedName | None = None

    def stores(self) -> list[tuple[str, str]]:
        """The field that says under which name in `shared` the output is kept, and that name."""
        names = {"storeResultAs": self.store_result_as, **self._stores_too()}
        return [(field, name) for field, name in names.items() if name is not None]

    def _stores_too(self) -> dict[str, str | None]:
        return {}


class _Work(_Step):
    input_at: ClassVar[str] = ""  # where in the document the input's templates stand

    timeout_ms: int = Field(default=TIMEOUT_MS_DEFAULT, ge=TIMEOUT_MS_MIN, le=TIMEOUT_MS_MAX)
    retry_policy: RetryPolicy = RetryPolicy()


class _Handled(_Work):
    input_at: ClassVar[str] = "/parameters"

    handler: Handler
    parameters: AnyObject = Field(default_factory=dict)

    @property
    def slug(self) -> str:
        """The name that the handler was registered under."""
        return self.handler

    def input_template(self) -> JsonObject:
        """The input before its templates are filled in."""
        return self.parameters


class FunctionStep(_Handled):
    """A Python function in the worker."""

    type: Literal["function"]


class SubprocessStep(_Handled):
    """A Python function in a process of its own, with limits."""

    type: Literal["subprocess"]


class SparkStep(_Handled):
    """A Python function that is given the Spark session."""

    type: Literal["spark"]


class ServiceStep(_Work):
    """An HTTP request to a registered service."""

    type: Literal["service"]
    service_slug: Slug
    request: Request = Request()
    capture_response: bool = True
    store_response_as: SharedName | None = None
    require_healthy: bool = False
    allow_degraded: bool = True

    @property
    def slug(self) -> str:
        """The service that is called."""
        return self.service_slug

    def _stores_too(self) -> dict[str, str | None]:
        return {"storeResponseAs": self.store_response_as}

    def input_template(self) -> JsonObject:
        """The input before its templates are filled in."""
        return {
            "request": self.request.model_dump(by_alias=True),
            "captureResponse": self.capture_response,
            "requireHealthy": self.require_healthy,
            "allowDegraded": self.allow_degraded,
        }


class WebhookStep(_Work):
    """A signed POST (Standard Webhooks) to any address that the outbound guard lets through."""

    type: Literal["webhook"]
    url: str = Field(pattern=r"^https?://\S", max_length=2_000)
    secret_name: Name | None = None
    body: AnyJson = Field(default_factory=dict)
    wait_for_callback: bool = False

    @property
    def slug(self) -> str:
        """What events and logs call the step's job."""
        return "webhook"

    def input_template(self) -> JsonObject:
        """The input before its templates are filled in."""
        return {
            "url": self.url,
            "secretName": self.secret_name,
            "body": self.body,
            "waitForCallback": self.wait_for_callback,
        }


class AirflowStep(_Work):
    """A run of a DAG in Airflow, launched under the step's id and followed to its end."""

    type: Literal["airflow"]
    service_slug: Slug
    dag_id: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", max_length=250)
    conf: AnyObject = Field(default_factory=dict)
    poll_seconds: int = Field(default=10, ge=1, le=3_600)

    @property
    def slug(self) -> str:
        """The service that is Airflow."""
        return self.service_slug

    def input_template(self) -> JsonObject:
        """The input before its templates are filled in."""
        return {"dagId": self.dag_id, "conf": self.conf, "pollSeconds": self.poll_seconds}


WorkStep: TypeAlias = Annotated[
    FunctionStep | SubprocessStep | SparkStep | ServiceStep | WebhookStep | AirflowStep,
    Field(discriminator="type"),
]


class FanoutStep(_Step):
    """One run of `template` for every item of a list, a few at a time."""

    type: Literal["fanout"]
    collection: str | list[AnyJson]
    template: WorkStep
    max_items: int = Field(default=FANOUT_ITEMS_DEFAULT, ge=1, le=FANOUT_ITEMS_MAX)
    max_concurrency: int = Field(
        default=FANOUT_CONCURRENCY_DEFAULT, ge=1, le=FANOUT_CONCURRENCY_MAX
    )
    store_results_as: SharedName | None = None

    def _stores_too(self) -> dict[str, str | None]:
        return {"storeResultsAs": self.store_results_as}


Step: TypeAlias = Annotated[
    FunctionStep
    | SubprocessStep
    | SparkStep
    | ServiceStep
    | WebhookStep
    | AirflowStep
    | FanoutStep,
    Field(discriminator="type"),
]
