"""Ground truth for races between launches, copies and fills, each beside its right twin."""
