"""Calibration: which thresholds the recorded sessions support, with the evidence, or why none."""
