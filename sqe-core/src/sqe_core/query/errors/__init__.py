"""What a client reads about a failure: our text, the user's own words, a place in the user's own statement."""
