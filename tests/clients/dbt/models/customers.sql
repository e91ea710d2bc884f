{{ config(materialized='table', on_table_exists='replace', persist_docs={'relation': true, 'columns': true}) }}
select c.id, cast(c.name as varchar) as name, count(o.id) as orders, cast(sum(o.amount) as decimal(38,2)) as spent
from (select cast(id as bigint) as id, name from {{ ref('raw_customers') }}) c
left join {{ ref('stg_orders') }} o on o.customer_id = c.id
group by c.id, c.name
