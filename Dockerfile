# Dockerfile — images of Tenon on Debian, from its packages (docs/packages.md):
#   docker build -t tenon .                          the program tenon, with tenon-run
#   docker build -t tenon-run --target runtime .     tenon-run alone, for programs that tenon compile has saved
FROM debian:bookworm AS build
COPY . /tenon
WORKDIR /tenon
RUN bash -c 'set -euo pipefail; source tools/setup; \
  apt-get -q update; install_packages "${build_packages[@]}" dpkg-dev file; \
  build build all -DCMAKE_INSTALL_PREFIX=/usr; cpack --config build/CPackConfig.cmake -B /debs'

FROM debian:bookworm-slim AS runtime
COPY --from=build /debs/tenon-run_*.deb /debs/
RUN apt-get -q update && apt-get install -y --no-install-recommends /debs/*.deb && rm -rf /debs /var/lib/apt/lists/*
ENTRYPOINT ["tenon-run"]

FROM runtime AS tenon
COPY --from=build /debs/tenon_*.deb /debs/
RUN apt-get -q update && apt-get install -y --no-install-recommends /debs/*.deb && rm -rf /debs /var/lib/apt/lists/*
ENTRYPOINT ["tenon"]
