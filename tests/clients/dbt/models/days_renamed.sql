{{ config(on_table_exists='rename', properties={"format": "'PARQUET'", "partitioning": "ARRAY['day']"}) }}
select cast(ordered_at as date) as day, count(*) as orders from {{ ref('stg_orders') }} group by 1
