{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns') }}
select id, customer_id, amount, status {% if is_incremental() %}, 'again' as run{% endif %} from {{ ref('stg_orders') }}
{% if is_incremental() %}where id >= 3{% endif %}
