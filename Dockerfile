# The tools and libraries of Viaduct on Debian:
#   docker build -t viaduct .
#   docker run --rm viaduct vi-info
# A container with a /dev/shm of its own counts as a host of its own, to which the backend tcp connects.
# The stage `develop` is for .devcontainer.
ARG RELEASE=bookworm

FROM debian:${RELEASE} AS develop
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git sudo

FROM develop AS packages
COPY . /src
WORKDIR /src
RUN ./dev package

FROM debian:${RELEASE} AS runtime
COPY --from=packages /src/build/package/*.deb /packages/
RUN apt-get update && \
    apt-get install -y --no-install-recommends /packages/*.deb ibverbs-providers librdmacm1 && \
    rm -rf /packages /var/lib/apt/lists/*
CMD ["vi-info"]
