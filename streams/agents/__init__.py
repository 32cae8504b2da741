"""The stages: each reads a batch, calls the core, publishes, then writes its state. No rules here."""
