# Decides from grants: data.sqe.grants[table][role], which SQE's GRANT and REVOKE write.
#
#   GRANT SELECT (id, ssn MASKED WITH 'HASH') ROWS WHERE region = 'EU' ON lake.hr.people TO ROLE analyst
#   data.sqe.grants["lake.hr.people"].analyst = {"columns": ["id", "ssn"], "masks": {"ssn": "hash"}, "row_filter": "region = 'EU'"}
#
# [policy.opa] authz_path = "sqe/authz" asks for this package. It holds one rule, because everything that is no function
# becomes part of the answer, and SQE refuses answers with keys that it does not know.
package sqe.authz

import rego.v1

# What has no entry is denied. An administrator may do everything.
per_table[name_of(table)] := {} if {
	is_admin(input.roles)
	some table in input.tables
}

# Whoever holds a grant reads. A statement that does anything else with the table as well is denied.
per_table[name_of(table)] := reading(grants) if {
	not is_admin(input.roles)
	some table in input.tables
	table.type in {"table", "view"}
	every action in table.actions {
		action in {"select", "describe"}
	}
	grants := grants_on(table, input.roles)
	count(grants) > 0
}

# Catalogs and schemas appear in listings when something in them does.
per_table[name_of(table)] := {} if {
	not is_admin(input.roles)
	some table in input.tables
	table.type in {"schema", "catalog"}
	table.actions == ["describe"]
	some granted, roles in data.sqe.grants
	startswith(granted, concat("", [name_of(table), "."]))
	some role in input.roles
	roles[role]
}

is_admin(roles) if "admin" in roles

# A table that was dropped and made anew has another id, and nobody was granted anything on it.
grants_on(table, roles) := {role: grant |
	some role in roles
	grant := data.sqe.grants[name_of(table)][role]
	is_about(grant, table)
}

is_about(grant, table) if object.get(grant, "object_uuid", null) in {null, table.uuid}

# Listings come without ids. They show a name, and no more.
is_about(_, table) if {
	table.uuid == null
	table.actions == ["describe"]
}

# Several roles: columns add up, filters all hold, and a column that one of them masks is masked.
reading(grants) := object.union_n([columns_of(grants), filters_of(grants), masks_of(grants)])

columns_of(grants) := {} if {
	some grant in grants
	not has_columns(grant)
} else := {"allowed_columns": [column | some column in {column | some grant in grants; some column in grant.columns}]}

has_columns(grant) if is_array(grant.columns)

filters_of(grants) := {"row_filters": [row_filter | some row_filter in {grant.row_filter | some grant in grants}]}

# Two different masks on one column: nothing of the value is shown.
masks_of(grants) := {"masks": {column: mask |
	some grant in grants
	some column, _ in grant.masks
	found := {mask | some other in grants; mask := other.masks[column]}
	mask := strictest(found)
}}

strictest(masks) := mask if {
	count(masks) == 1
	some mask in masks
} else := "null"

# lake.hr.people; a part that holds a dot or a quote is quoted: lake."eu.hr".people
name_of(table) := concat(".", [quoted(part) |
	some part in [table.catalog, table.schema, table.table]
	part != null
])

quoted(part) := concat("", ["\"", replace(part, "\"", "\"\""), "\""]) if {
	regex.match(`[."]`, part)
} else := part
