"""OpenID Connect: ID tokens of programs, and signing in to the portal, through one provider."""
