//! What several stages must agree on: reserved names, severities, times, JSON text.
