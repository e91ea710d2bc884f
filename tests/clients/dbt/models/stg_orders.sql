{{ config(materialized='view') }}
select id, customer_id, ordered_at, amount, status from {{ ref('raw_orders') }}
