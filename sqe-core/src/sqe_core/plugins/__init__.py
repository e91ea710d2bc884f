"""Finding, checking and calling plugins. stevedore and pluggy are used only here and in `spi`."""
