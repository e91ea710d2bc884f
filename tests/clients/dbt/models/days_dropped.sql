{{ config(on_table_exists='drop') }}
select cast(ordered_at as date) as day, max(amount) as most from {{ ref('stg_orders') }} group by 1
