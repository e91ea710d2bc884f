package sqe.authz_test

import rego.v1

import data.sqe.authz

people := {"catalog": "lake", "schema": "hr", "table": "people", "type": "table", "uuid": "u1", "actions": ["select"], "columns": ["id", "ssn", "name"]}

orders := {"catalog": "lake", "schema": "eu.sales", "table": "orders", "type": "table", "uuid": "u2", "actions": ["select"], "columns": ["id"]}

grants := {
	"lake.hr.people": {
		"analyst": {"columns": ["id", "ssn"], "masks": {"ssn": "hash"}, "row_filter": "region = 'EU'", "object_uuid": "u1"},
		"auditor": {"columns": ["name", "ssn"], "masks": {"ssn": "null"}},
		"manager": {},
	},
	"lake.\"eu.sales\".orders": {"analyst": {}},
}

asked(roles, tables) := answer if {
	answer := authz.per_table with input as {"user": "alice", "roles": roles, "tables": tables}
		with data.sqe.grants as grants
}

test_nobody_reads_nothing if asked([], [people, orders]) == {}

test_one_role if asked(["analyst"], [people]) == {"lake.hr.people": {
	"allowed_columns": ["id", "ssn"],
	"masks": {"ssn": "hash"},
	"row_filters": ["region = 'EU'"],
}}

test_two_roles_add_columns_and_keep_every_restriction if {
	asked(["analyst", "auditor"], [people]) == {"lake.hr.people": {
		"allowed_columns": ["id", "name", "ssn"],
		"masks": {"ssn": "null"},
		"row_filters": ["region = 'EU'"],
	}}
}

test_a_grant_on_all_columns_adds_all if {
	entry := asked(["analyst", "manager"], [people])["lake.hr.people"]
	not "allowed_columns" in object.keys(entry)
	entry.masks == {"ssn": "hash"}
}

test_a_dot_is_quoted if asked(["analyst"], [orders]) == {"lake.\"eu.sales\".orders": {"masks": {}, "row_filters": []}}

test_readers_do_not_write if {
	every actions in [["update"], ["select", "update"], ["drop"], ["create"]] {
		asked(["analyst"], [object.union(people, {"actions": actions})]) == {}
	}
}

test_administrators_write if {
	asked(["admin"], [object.union(people, {"actions": ["drop"]})]) == {"lake.hr.people": {}}
}

test_a_new_table_of_the_same_name_has_no_grants if {
	asked(["analyst"], [object.union(people, {"uuid": "u9"})]) == {}
}

test_what_is_listed_has_no_columns_and_no_id if {
	listed := object.union(people, {"actions": ["describe"], "columns": [], "uuid": null})
	object.keys(asked(["analyst"], [listed])) == {"lake.hr.people"}
	asked(["stranger"], [listed]) == {}
}

test_schemas_of_granted_tables_are_listed if {
	schema := {"catalog": "lake", "schema": "hr", "table": null, "type": "schema", "actions": ["describe"], "columns": []}
	catalog := {"catalog": "lake", "schema": null, "table": null, "type": "catalog", "actions": ["describe"], "columns": []}
	asked(["analyst"], [schema, catalog]) == {"lake.hr": {}, "lake": {}}
	asked(["stranger"], [schema, catalog]) == {}
	asked(["analyst"], [object.union(schema, {"schema": "h"})]) == {}
	asked(["analyst"], [object.union(schema, {"actions": ["drop_schema"]})]) == {}
}
