"""The reviews of the demo and the tests (`reviews.tsv`); how they were made: docs/corpus.md."""
