"""The admission service: AdmissionReview in and out over the pure rules of `vcbatch.api`.

`review` reads and writes AdmissionReviews, `world` answers what rules look up, `service` decides, `app` is the FastAPI
application, `server` puts it on a port with TLS, `configurations` tells an API server to ask it.
"""
