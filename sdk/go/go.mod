module github.com/OWNER/bothy/sdk/go

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	pgregory.net/rapid v1.3.0
)
