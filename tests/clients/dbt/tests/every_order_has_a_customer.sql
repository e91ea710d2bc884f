select o.id from {{ ref('stg_orders') }} o left join {{ ref('customers') }} c on c.id = o.customer_id where c.id is null
