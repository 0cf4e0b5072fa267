# The image of the controllers, the scheduler and the admission service. docs/image.md says how it is built.
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS dependencies
ARG EXTRAS=webhooks,otel
# Where pip finds packages, if not at its default: an index, or a folder that is mounted into the build.
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
RUN python3 -m venv --without-pip /opt/vcbatch
COPY constraints.txt pyproject.toml image/requirements.py image/slim.py ./
RUN python3 requirements.py "${EXTRAS}" > requirements.txt \
 && python3 -m pip --python /opt/vcbatch/bin/python install --quiet --only-binary=:all: \
      --constraint constraints.txt --requirement requirements.txt \
 && python3 slim.py /opt/vcbatch

FROM dependencies AS project
ARG PIP_INDEX_URL
ARG PIP_FIND_LINKS
ARG PIP_NO_INDEX
RUN python3 -m venv --without-pip /opt/backend \
 && python3 -m pip --python /opt/backend/bin/python install --quiet --only-binary=:all: \
      --constraint constraints.txt hatchling
COPY . source
RUN python3 -m pip --python /opt/backend/bin/python wheel --quiet --no-deps --no-build-isolation --wheel-dir wheels ./source \
 && python3 -m pip --python /opt/vcbatch/bin/python install --quiet --no-deps --no-index --prefix /opt/project wheels/*.whl \
 && python3 slim.py /opt/project \
 && install -m 0755 source/image/vcbatch /opt/project/bin/vcbatch

FROM ${BASE}
ARG VERSION=
ARG REVISION=
ARG SOURCE=
ARG CREATED=
ARG BASE
LABEL org.opencontainers.image.title="vcbatch" \
      org.opencontainers.image.description="Gang-scheduled batch jobs for machine-learning training: controllers, scheduler and admission service" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE}"
RUN --mount=type=bind,source=image,target=/mnt ["python3", "-IB", "/mnt/finish.py", "10001"]
COPY --from=dependencies /opt/vcbatch /opt/vcbatch
COPY --from=project /opt/project /opt/vcbatch
ENV PATH=/opt/vcbatch/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    HOME=/tmp
WORKDIR /
USER 10001:10001
ENTRYPOINT ["/opt/vcbatch/bin/vcbatch"]
CMD ["--help"]
