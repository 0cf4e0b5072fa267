#!/usr/bin/env bash
# Build the image, or save it: `build.sh build` or `build.sh save FILE`, with docker (buildx), podman or buildah.
#
# Variables: TOOL chooses among them; IMAGE and TAG name the image; PLATFORMS (linux/amd64,linux/arm64) makes a manifest
# list; BASE, EXTRAS, VERSION, REVISION, SOURCE and CREATED are the build arguments of the Dockerfile; PUSH=true pushes;
# ARGS are further arguments of the tool.
set -euo pipefail
cd "$(dirname "$0")/.."

works() {
    case $1 in
        docker) docker info >/dev/null 2>&1 ;; # the client may be there without a daemon
        *) "$1" --version >/dev/null 2>&1 ;;
    esac
}

choose() {
    local tool
    if [ -n "${TOOL:-}" ]; then
        case $TOOL in docker | podman | buildah) ;; *)
            echo "error: TOOL=$TOOL is none of docker, podman and buildah" >&2
            exit 2
            ;;
        esac
        echo "$TOOL"
        return
    fi
    for tool in docker podman buildah; do
        if works "$tool"; then
            echo "$tool"
            return
        fi
    done
    echo "error: the image is built with docker, podman or buildah, and none of them works here" >&2
    echo "Install one, or build and test it in namespaces with: make test-image" >&2
    exit 1
}

tool=$(choose)
version=${VERSION:-$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' vcbatch/_version.py)}
name=${IMAGE:-vcbatch}:${TAG:-$version}

build() {
    local revision created arguments
    revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || true)}
    if [ -z "${REVISION:-}" ] && [ -n "$(git status --porcelain 2>/dev/null || true)" ]; then
        revision=$revision-modified
    fi
    # The commit's time: the same commit gives the same image.
    created=${CREATED:-$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || true)}
    arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision" --build-arg "CREATED=$created")
    for each in BASE EXTRAS SOURCE; do
        if [ -n "${!each:-}" ]; then arguments+=(--build-arg "$each=${!each}"); fi
    done
    # shellcheck disable=SC2206 # several words are several arguments
    arguments+=(${ARGS:-})
    if [ "$tool" = docker ]; then
        if [ "${PUSH:-}" = true ]; then
            arguments+=(--push)
        elif [[ ${PLATFORMS:-} != *,* ]]; then
            arguments+=(--load)
        elif [[ " ${arguments[*]} " != *" --output"* ]]; then
            echo "error: docker keeps no image of several platforms" >&2
            echo "Push it with PUSH=true, or write it with ARGS=--output=type=oci,dest=FILE" >&2
            exit 2
        fi
        if [ -n "${PLATFORMS:-}" ]; then arguments+=(--platform "$PLATFORMS"); fi
        docker buildx build "${arguments[@]}" --tag "$name" .
    elif [ -n "${PLATFORMS:-}" ]; then
        "$tool" build --format oci "${arguments[@]}" --platform "$PLATFORMS" --manifest "$name" .
        if [ "${PUSH:-}" = true ]; then "$tool" manifest push --all "$name" "docker://$name"; fi
    else
        "$tool" build --format oci "${arguments[@]}" --tag "$name" .
        if [ "${PUSH:-}" = true ]; then "$tool" push "$name"; fi
    fi
    echo "$name"
}

save() {
    case $tool in
        docker) docker save --output "$1" "$name" ;;
        podman) podman save --quiet --format oci-archive --output "$1" "$name" ;;
        buildah) buildah push --quiet "$name" "oci-archive:$1:$name" ;;
    esac
}

case ${1:-} in
    build) build ;;
    save) save "${2:?a file}" ;;
    *)
        echo "error: build.sh build, or build.sh save FILE" >&2
        exit 2
        ;;
esac
