# For those who build with Docker: docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=… .
# make image needs no Docker, and writes the same image every time.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
      -ldflags "-s -w -buildid= -X github.com/weir-dev/weir/internal/version.release=$VERSION" -o /weir .

FROM scratch
LABEL org.opencontainers.image.title=weir \
      org.opencontainers.image.source=https://github.com/weir-dev/weir \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /weir /weir
USER 65532:65532
ENTRYPOINT ["/weir"]
