{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key=['customer_id']) }}
select customer_id, id, amount{% if is_incremental() %} * 2{% endif %} as amount from {{ ref('stg_orders') }}
{% if is_incremental() %}where customer_id = 1{% endif %}
