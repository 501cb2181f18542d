//! What a query needs, and the query as a prepared plan.
