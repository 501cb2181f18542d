//! The Tailrace log agent.
