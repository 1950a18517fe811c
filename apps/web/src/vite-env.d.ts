// SPDX-License-Identifier: Apache-2.0
/// <reference types="vite/client" />

/** Identifies the build; tabs of different builds do not talk to each other. */
declare const __BUILD__: string;
