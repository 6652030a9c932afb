"""OpenID Connect: ID tokens of programs, and signing in to the portal, by one provider."""
