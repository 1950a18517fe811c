module github.com/OWNER/bothy/sdk/go

go 1.26.0
