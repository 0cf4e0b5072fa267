"""The serving certificate, and the trust of API servers in it.

`files` follows a pair of files that another program renews: cert-manager, or an operator. `managed` keeps an authority
and a leaf in a Secret that all replicas share: `rotation` decides what is due, `issue` signs it, and `trust` writes
authorities into our webhook configurations. Both load `context`, the TLS context of the server.
"""
