//! YAML to a checked Config.
