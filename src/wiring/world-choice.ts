/** What the choice between the worlds depends on, and what every world is made from. */
import type { Log } from '../platform/log.ts';
import type { Settings } from '../schema/settings.ts';

export interface WorldChoice {
  readonly settings: Settings;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly version: string;
  /** Path of the shipped `toolboxes/manifest.json`. */
  readonly toolboxManifest: string;
}
