//! Composes the stages; decides when a checkpoint may move.
