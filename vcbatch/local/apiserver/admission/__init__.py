"""Admission: webhooks that change or refuse a request, between defaulting and storing.

`request` describes the request, `hooks` parses the stored webhook configurations, `matching` decides which of them
apply, `reviews` writes AdmissionReviews and parses the responses, `remote` calls webhooks over HTTPS, and `webhooks`
runs them in the order of a real API server. A webhook of a `Service` that lives in this process is called directly.
"""

from __future__ import annotations

from vcbatch.local.apiserver.admission.request import Admission, AdmissionRequest, Answer, Asked, NoAdmission, Service

__all__ = ["Admission", "AdmissionRequest", "Answer", "Asked", "NoAdmission", "Service"]
