{{ config(materialized='incremental', incremental_strategy='append') }}
select id, status, current_timestamp as seen_at from {{ ref('stg_orders') }}
