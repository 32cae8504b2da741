"""The rules, as pure functions: no Kafka, no clock, no files, no chance; the standard library only."""
