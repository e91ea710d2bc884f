{% snapshot orders_history %}
{{ config(unique_key='id', strategy='check', check_cols=['status']) }}
select id, status from {{ ref('raw_orders') }}
{% endsnapshot %}
