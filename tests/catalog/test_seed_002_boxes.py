"""Every checkbox of seed 002 has a test whose name says it; here is which, box by box.

What the seed names by its own tools is done by ours: TypeScript interfaces are payload models,
AJV is jsonschema-rs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CATALOG, STORE = "catalog/test_seed_002.py", "store/test_seed_002.py"

BOXES: dict[str, tuple[str, str]] = {
    # Acceptance criteria: core event schema
    "Define `DomainEvent` interface with all required fields": (
        CATALOG,
        "test_a_domain_event_has_all_required_fields_id_type_timestamp_tags_metadata_data",
    ),
    "Implement event type naming convention": (
        CATALOG,
        "test_event_types_follow_the_naming_convention_aggregate_action_status",
    ),
    "Create JSON schema validation for event structure": (
        CATALOG,
        "test_the_structure_of_an_event_is_validated_by_json_schema",
    ),
    "Support UUID v7 for time-sortable event IDs": (
        CATALOG,
        "test_event_ids_are_uuid_v7_and_sort_by_time",
    ),
    "Implement ISO 8601 millisecond precision timestamps": (
        CATALOG,
        "test_timestamps_are_iso_8601_with_millisecond_precision",
    ),
    # Acceptance criteria: event tagging system
    "Design flexible JSONB tagging schema for query optimization": (
        STORE,
        "test_the_tagging_schema_is_flexible_jsonb_and_any_tag_is_found",
    ),
    "Implement standard tag sets for different event types": (
        CATALOG,
        "test_different_event_types_have_standard_tag_sets",
    ),
    "Support custom tags for extensibility": (
        CATALOG,
        "test_custom_tags_are_supported_for_extensibility",
    ),
    "Create tag indexing strategy for performance": (
        STORE,
        "test_tags_have_an_indexing_strategy_for_performance",
    ),
    # Acceptance criteria: event type registry
    "Create comprehensive event type definitions for all system operations": (
        CATALOG,
        "test_event_types_for_all_system_operations_are_defined",
    ),
    "Implement event type validation and enumeration": (
        CATALOG,
        "test_event_types_are_validated_and_can_be_enumerated",
    ),
    "Support versioning of event schemas": (
        STORE,
        "test_versioning_of_event_schemas_is_supported",
    ),
    "Create event type documentation generator": (
        STORE,
        "test_an_event_type_documentation_generator_describes_every_type",
    ),
    # Acceptance criteria: metadata management
    "Define metadata structure for workflow versioning": (
        CATALOG,
        "test_metadata_has_a_structure_for_workflow_versioning",
    ),
    "Implement event source tracking (system vs plugin)": (
        CATALOG,
        "test_the_event_source_is_tracked_system_versus_plugin",
    ),
    "Support correlation IDs for distributed tracing": (
        CATALOG,
        "test_correlation_ids_are_supported_for_distributed_tracing",
    ),
    "Create metadata enrichment pipeline": (
        CATALOG,
        "test_a_metadata_enrichment_pipeline_fills_in_what_is_known",
    ),
    # Tasks: core schema definition
    "Create `packages/events/src/schemas/event.schema.ts`": (
        CATALOG,
        "test_the_schema_of_the_event_itself_is_a_file_that_validates_it",
    ),
    "Implement TypeScript interfaces for all event types": (
        CATALOG,
        "test_every_event_type_has_a_typed_interface",
    ),
    "Create JSON schema files for validation": (
        CATALOG,
        "test_json_schema_files_exist_for_validation_of_every_type",
    ),
    "Implement event type registry": (
        CATALOG,
        "test_the_event_type_registry_holds_every_type_with_its_version_and_schema_hash",
    ),
    # Tasks: validation system
    "Create event validation service": (
        STORE,
        "test_an_event_validation_service_refuses_what_does_not_fit_and_stores_nothing",
    ),
    "Implement schema validation using AJV": (
        CATALOG,
        "test_schema_validation_uses_a_json_schema_validator_and_the_type_s_own_schema",
    ),
    "Add custom validators for UUID v7 and timestamps": (
        CATALOG,
        "test_custom_validators_check_uuid_v7_and_timestamps",
    ),
    "Create validation error handling": (
        CATALOG,
        "test_a_validation_error_says_what_where_and_what_to_do",
    ),
    # Tasks: type system
    "Define event type constants and enums": (
        CATALOG,
        "test_event_type_constants_exist_for_every_type",
    ),
    "Create event type builder utilities": (
        CATALOG,
        "test_event_types_have_builder_utilities",
    ),
    "Implement event type versioning": (
        STORE,
        "test_versioning_of_event_schemas_is_supported",
    ),
    "Create documentation generator": (
        STORE,
        "test_an_event_type_documentation_generator_describes_every_type",
    ),
    # Tasks: database integration
    "Create database migration for events table": (
        STORE,
        "test_a_database_migration_makes_the_events_table_of_the_seed",
    ),
    "Implement event storage service": (
        STORE,
        "test_an_event_storage_service_keeps_events_immutably_and_in_order",
    ),
    "Add database indexes for performance": (
        STORE,
        "test_database_indexes_serve_type_source_correlation_severity_and_time",
    ),
    "Create event query builders": (
        STORE,
        "test_event_query_builders_say_the_same_to_the_store_as_to_http",
    ),
    # Tasks of testing
    "Unit tests for schema validation": (
        "registry/test_schema.py",
        "test_every_fault_is_said_at_once",
    ),
    "Integration tests for database operations": (
        STORE,
        "test_an_event_storage_service_keeps_events_immutably_and_in_order",
    ),
    "Performance tests for event insertion/querying": (
        STORE,
        "test_performance_of_insertion_and_querying_is_measured_against_bars",
    ),
    "Schema compatibility tests": (
        STORE,
        "test_schema_compatibility_is_checked_before_a_version_is_published",
    ),
}


def test_the_seed_has_37_checkboxes() -> None:
    assert len(BOXES) == 37


@pytest.mark.parametrize("box", BOXES)
def test_the_test_of_a_checkbox_is_there(box: str) -> None:
    file, name = BOXES[box]

    assert re.search(rf"^def {name}\(", (TESTS / file).read_text("utf-8"), re.MULTILINE), name
