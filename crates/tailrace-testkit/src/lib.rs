//! Test only: a scripted collector, writers that rotate, corpora.
