"""`--login`: the browser, the device code, and the tokens that are kept."""
