/**
 * The reasons a slot can have on every runtime, grouped by what they mean for a user. Not here: what only a cluster reports
 * (`cluster-reasons.ts`). Each text is a row of `docs/reference/conditions.md`.
 */

export interface ReasonFacts {
  /** What it means, as a user of the slot would say it. */
  readonly meaning: string;
  /** What to do about it; "Nothing" where there is nothing to do. */
  readonly action: string;
  /** Somebody may have to act: only such a reason can occur with `Stalled`, and in a failure of the kind `stalled`. */
  readonly stalled?: true;
}

/** The slot is at rest on purpose. */
export const AT_REST_REASONS = {
  Disabled: { meaning: 'The slot is not enabled', action: 'Run `svcctl slot load <slot>`, or set `enabled = true`' },
  NoReplicas: { meaning: 'The slot is scaled to zero replicas', action: 'Set `replicas` to 1 or more' },
  NotAskedFor: {
    meaning: 'The slot loads on demand, and no request has asked for it yet',
    action: 'Send a request, or set `load` to `always`',
  },
  IdleTimedOut: {
    meaning: 'The slot had no request for as long as `idle_timeout` allows, so it was unloaded',
    action: 'Send a request: it loads the slot again',
  },
} as const satisfies Record<string, ReasonFacts>;

/** Normal work, or no work at all. */
export const PROGRESS_REASONS = {
  AtRest: { meaning: 'No action is required', action: 'Nothing' },
  ProbePassed: { meaning: 'The slot answers', action: 'Nothing' },
  NotStalled: { meaning: 'Nothing keeps the controller from continuing on its own', action: 'Nothing' },
  Parsed: { meaning: 'The text of the slot is valid', action: 'Nothing' },
  AsApplied: { meaning: 'The workload runs as it was started', action: 'Nothing' },
  NotYetSeen: { meaning: 'The slot is new, and the controller has not looked at it yet', action: 'Wait a moment' },
  Progressing: {
    meaning: 'The slot is being loaded',
    action: 'Wait; `svcctl wait slot/<slot> --for condition=Ready` returns when it is ready',
  },
  ImageNotPresent: { meaning: 'The image is not on this machine yet, so it is pulled', action: 'Wait; the status shows the progress' },
  ModelNotPresent: { meaning: 'The model is not in the store yet, so it is downloaded', action: 'Wait; the status shows the progress' },
  ModelNotLookedUp: {
    meaning: 'The model store has not answered yet',
    action: 'Wait; if it lasts, check that the disk of the store responds',
  },
  Fetching: { meaning: 'The pods of the slot download and verify the model', action: 'Wait' },
  Starting: { meaning: 'The workload is being created', action: 'Wait' },
  Warming: {
    meaning: 'The server runs and loads its model; it does not answer yet',
    action: 'Wait; `start_timeout` limits how long this may take',
  },
  ProbeNotPassed: {
    meaning: 'The server runs and has not answered its first probe',
    action: 'Wait; `start_timeout` limits how long this may take',
  },
  ProbeDue: { meaning: 'A probe checks that the server still answers', action: 'Nothing' },
  WorkloadNotPresent: { meaning: 'The slot should run and has no workload, so one is started', action: 'Wait' },
  RevisionOutdated: { meaning: 'What runs belongs to an earlier version of the slot and is being replaced', action: 'Wait' },
  PreviousServes: {
    meaning: 'What ran before the last edit still answers, because what the edit asks for is not ready',
    action: 'Wait, or read the message: it says what the new workload is waiting for',
  },
  ApplyOutdated: { meaning: 'An edit is applied to the running workload without a restart', action: 'Wait' },
  RoomNeeded: {
    meaning: 'The old workload ends to make room for the new one',
    action: 'Wait; `swap = "blue-green"` keeps the old one instead',
  },
  WorkloadsLeaving: {
    meaning: 'A new workload starts when the ones before it have ended',
    action: 'Wait; `drain_timeout` limits how long',
  },
  MemoryNotFree: { meaning: 'A new workload starts when draining workloads have released their memory', action: 'Wait' },
  WorkloadSurplus: { meaning: 'The slot has more workloads than it needs, so this one is ended', action: 'Nothing' },
  SlotRemoved: { meaning: 'The slot was removed, so its workloads are ended', action: 'Nothing' },
  PullNotWanted: { meaning: 'No slot needs this image or model any more, so its pull is cancelled', action: 'Nothing' },
} as const satisfies Record<string, ReasonFacts>;

/** Something failed while the slot was loading or running. */
export const PROBLEM_REASONS = {
  SpecInvalid: {
    meaning: 'The text of the slot has a mistake; the last valid version stays in force',
    action: 'Correct the keys that the message names; `svcctl validate -f <file>` shows line and column',
    stalled: true,
  },
  ProviderMissing: { meaning: 'This installation does not have the provider', action: 'Set `provider` to another one', stalled: true },
  ImageUnknown: {
    meaning: 'The toolbox manifest has no image for this provider and backend',
    action: 'Build an image as `docs/podman.md` describes, or name one in `toolboxes.toml`',
    stalled: true,
  },
  ImageMissing: {
    meaning: 'The image is not on this machine and cannot be pulled from a registry',
    action: 'Build it as `docs/podman.md` describes',
    stalled: true,
  },
  ImagePullFailed: {
    meaning: 'The image could not be pulled; the pull is tried again',
    action: 'Check the image name, its digest, the credentials for the registry, and the network',
  },
  ModelMissing: {
    meaning: 'The model is neither in the store nor in the catalogue',
    action: 'Put its file into the store, or correct `model.default`',
    stalled: true,
  },
  ModelUnusable: { meaning: 'The file of the model cannot be served', action: 'Replace the file that the message names', stalled: true },
  ModelPullFailed: {
    meaning: 'The model could not be downloaded or verified; the download is tried again and resumes',
    action: 'Check the network and the server that the message names',
  },
  ModelHashMismatch: {
    meaning: 'The downloaded file is not the one that the catalogue describes',
    action: 'Correct the SHA-256 in the catalogue, or the file on its server, and restart the slot',
    stalled: true,
  },
  CatalogueInvalid: {
    meaning: 'The catalogue entry of the model cannot be used',
    action: 'Correct the entry as the message says',
    stalled: true,
  },
  ModelStoreReadOnly: {
    meaning: 'The model store cannot be written to',
    action: 'Make the store writable, or put the model there yourself',
    stalled: true,
  },
  DiskFull: { meaning: 'The disk has no room for the model', action: 'Free disk space, then restart the slot', stalled: true },
  EngineInstallFailed: {
    meaning: 'The embedded engine could not be installed; the installation is tried again',
    action: 'Check the network and the npm registry',
  },
  InsufficientMemory: {
    meaning: 'The slot does not fit into memory beside the slots that come before it',
    action: 'Disable another slot, raise `priority`, lower `resources.memory`, or raise `SVC_MEMORY_BUDGET`',
    stalled: true,
  },
  PortRangeUsedUp: { meaning: 'Every port of the range is taken', action: 'Widen `SVC_PORT_RANGE`' },
  PortTaken: { meaning: 'Another program uses the port; the next port is tried', action: 'Nothing, or move `SVC_PORT_RANGE`' },
  NameTaken: {
    meaning: 'A container or an object of this name exists already',
    action: 'Wait if it is being removed; otherwise remove what the message names',
  },
  DeviceMissing: {
    meaning: 'This machine does not have the device that the backend needs',
    action: 'Set `backend` to another one, or make the device available',
    stalled: true,
  },
  StartFailed: {
    meaning: 'The server could not be started',
    action: 'Read the message and `svcctl slot logs <slot>`; correct the slot or the image',
    stalled: true,
  },
  StartTimeout: {
    meaning: 'The server did not answer in time after its start',
    action: 'Read `svcctl slot logs <slot>`, or raise `start_timeout`',
  },
  Crashed: { meaning: 'The process of the server ended unexpectedly; it is started again', action: 'Read `svcctl slot logs <slot>`' },
  OutOfMemory: {
    meaning: 'The process of the server was killed because it ran out of memory',
    action: 'Raise `resources.memory`, or choose a smaller model or context',
  },
  CrashLoop: {
    meaning: 'The slot has failed too often in a short time and is not started again',
    action: 'Read `svcctl slot logs <slot>`, then edit the slot or run `svcctl slot restart <slot>`',
    stalled: true,
  },
  ProbeFailing: { meaning: 'The server stopped answering and is replaced', action: 'Read `svcctl slot logs <slot>` if it happens again' },
  Vanished: { meaning: 'The workload is gone, and the controller did not stop it; it is started again', action: 'Find out who removed it' },
  WorkloadAltered: {
    meaning: 'The workload was altered from outside',
    action: 'Edit the slot instead, or set `drift` to `ignore`; with `repair`, the controller restores it',
  },
  StopFailed: { meaning: 'The workload could not be stopped; the stop is tried again', action: 'Read the message if it lasts' },
  RuntimeUnreachable: {
    meaning: 'The runtime (podman or the cluster) does not answer; requests still go to what ran last',
    action: 'Start the runtime again, or correct its address',
  },
  RuntimeRefused: { meaning: 'The runtime rejected a request; it is tried again', action: 'Read the message, which quotes the runtime' },
  InternalError: {
    meaning: 'The service failed in a way it should not',
    action: 'Report it with the message and the log',
    stalled: true,
  },
  Failed: { meaning: 'Something failed that has no reason of its own', action: 'Read the message' },
  Unknown: { meaning: 'The reason is not known to this version', action: 'Read the message' },
} as const satisfies Record<string, ReasonFacts>;
