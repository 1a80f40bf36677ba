/** The whole service: every concrete part, made once and put together. Nothing here decides anything. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { createMetrics } from './api/metrics.ts';
import type { LogSource, Manage } from './api/ports.ts';
import { createRoutes } from './api/routes.ts';
import { buildServer } from './api/server.ts';
import { createV1Routes } from './api/v1/v1-routes.ts';
import { chooseRuntime } from './cli/choose-runtime.ts';
import { createInventory } from './cli/inventory.ts';
import type { Log } from './cli/log.ts';
import { createGateway } from './dispatch/gateway.ts';
import { createTraffic } from './dispatch/traffic.ts';
import { createModelStore } from './models/store.ts';
import { PROVIDERS } from './providers/registry.ts';
import { createBoard } from './reconciler/board.ts';
import { createLoop } from './reconciler/loop.ts';
import type { SlotSource, StatusSink } from './reconciler/ports.ts';
import { createClock } from './runtimes/clock.ts';
import { createHostProbe } from './runtimes/host-probe.ts';
import { createProbeIo } from './runtimes/probe-io.ts';
import { createEventFeed } from './sources/event-feed.ts';
import { createStatusFiles } from './sources/status-files.ts';
import { createTomlDirectory } from './sources/toml-directory.ts';
import { createTomlEditor } from './sources/toml-editor.ts';
import { readToolboxManifest } from './sources/toolbox-manifest.ts';
import { fail, ok, type Result } from './spec/failure.ts';
import type { Settings } from './spec/settings.ts';

export interface ServiceOptions {
  readonly settings: Settings;
  readonly version: string;
  readonly log: Log;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The shipped manifest of toolbox images. */
  readonly toolboxManifest: string;
}

export interface Service {
  readonly url: string;
  readonly runtime: string;
  /** Lets requests in flight end for at most `graceMs`. Slots stay, or stop too where `SVC_ON_EXIT` says so. */
  stop(graceMs: number): Promise<void>;
}
