"""A statement's life: admitted, run, divided among readers, bounded, recorded."""
