"""Agent frameworks told to the gate: each module needs its framework, and nothing else imports it."""
