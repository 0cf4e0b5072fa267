"""The admission service: the pure rules of `vcbatch.api` as an HTTP service for AdmissionReviews.

`review` parses and renders AdmissionReviews, `world` has the objects that rules read, `service` decides, `app` is the
FastAPI application, `server` serves it on a port with TLS, `configurations` registers it at an API server.
"""
