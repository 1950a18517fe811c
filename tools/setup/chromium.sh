#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a Chromium for the browser tests. One on PATH is used as it is; otherwise it is installed with
# apt-get when this user may do so. Progress goes to the error output, so that the path can be captured.
set -euo pipefail

find_chromium() {
	local name
	for name in "${BOTHY_CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
		if [ -n "$name" ] && command -v "$name"; then
			return 0
		fi
	done
	# On macOS the browser is no command.
	local app="/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
	[ -x "$app" ] && echo "$app"
}

if find_chromium; then
	exit 0
fi

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	cat >&2 <<-'MESSAGE'
		The browser tests need Chromium or Chrome, and none was found.
		  Debian, Ubuntu:  sudo apt-get install chromium fonts-noto-color-emoji
		  Fedora:          sudo dnf install chromium google-noto-color-emoji-fonts
		  macOS:           brew install --cask google-chrome
		Or set BOTHY_CHROMIUM to the path of the program.
	MESSAGE
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends chromium fonts-noto-color-emoji >&2
find_chromium
