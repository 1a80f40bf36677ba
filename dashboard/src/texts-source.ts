/** Texts of the configuration source, loaded with the Settings page. */
import type { SourceStatus } from './types.ts';

export const G = {
  title: 'Configuration source',
  states: { Synced: 'Synced', OutOfSync: 'Out of sync', Unknown: 'Unknown' } satisfies Record<SourceStatus['state'], string>,
  suspended: 'Suspended',
  repository: 'Repository',
  applied: 'Applied commit',
  newest: 'Newest commit',
  fetched: 'Last fetched',
  held: 'Waits for its change window until',
  never: 'never',
  unknown: 'not known',
  differences: 'Files that differ',
  file: 'File',
  slot: 'Slot',
  change: 'Change',
  changes: { edited: 'edited here', deleted: 'deleted here', pending: 'changed by a commit that is not applied' },
  sync: 'Sync now',
  suspend: 'Suspend',
  resume: 'Resume',
  showDifferences: 'Show differences',
  noDifferences: 'A sync would change nothing',
  here: 'Here',
  afterSync: 'After a sync',
  noFile: 'No file',
} as const;
