/**
 * The reasons a slot can have on every runtime, grouped by what they mean for a user. Not here: what only a cluster
 * reports (`reasons.ts`). Each text is a row of `docs/reference/conditions.md`.
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
  Disabled: reason('Slot is off: `enabled = false`', 'Run `svcctl slot load <slot>`, or set `enabled = true`'),
  NoReplicas: reason('The slot is scaled to zero replicas', 'Set `replicas` to 1 or more'),
  NotAskedFor: reason('The slot loads on demand, and no request has asked for it yet', 'Send a request, or set `load` to `always`'),
  GaveWay: reason('The slot loads on demand, and other slots that were asked for have its memory', 'Send a request to the slot'),
  IdleTimedOut: reason(
    'The slot had no request for as long as `idle_timeout` allows, so it was unloaded',
    'Send a request: it loads the slot again',
  ),
};

/** Normal work, or no work at all. */
export const PROGRESS_REASONS = {
  AtRest: reason('No action is required', 'Nothing'),
  ProbePassed: reason('The slot answers', 'Nothing'),
  SpecInForce: reason('The latest change is live', 'Nothing'),
  Paused: reason(
    'Rollouts of the slot are paused, and an edit of it waits; what was in force before stays so, and is repaired',
    'Run `svcctl rollout resume slot/<slot>`, or remove `paused` from `[rollout]`',
  ),
  Evaluating: reason(
    'A model answers the cases of `rollout.check` or `rollout.cases` before it gets requests, or to be compared with',
    'Wait; `svcctl explain <slot>` says what was found',
  ),
  NotStalled: reason('Nothing keeps the controller from continuing on its own', 'Nothing'),
  Parsed: reason('The text of the slot is valid', 'Nothing'),
  AliasConflict: reason(
    'The text of the slot is valid, but one of its aliases, or a name of one of its presets, has another meaning, too',
    'Rename the alias that the message names, or the preset, in one of the two places',
  ),
  FallbackUnusable: reason(
    'The text of the slot is valid, but a slot that its `[fallback]` names does not exist, is the slot itself, or cannot answer all of its requests',
    'Create the slot that the message names, or remove its name from `fallback`',
  ),
  AsApplied: reason('No drift', 'Nothing'),
  NotYetSeen: reason(
    'The slot is new, and the controller has not looked at it yet',
    'Wait a moment; if it lasts in a cluster, check that a gateway runs in its namespace',
  ),
  Progressing: reason('The slot is being loaded', 'Wait; `svcctl wait slot/<slot>` returns when it is done'),
  ImageNotPresent: reason('The image is not on this machine yet, so it is pulled', 'Wait; the status shows the progress'),
  ModelNotPresent: reason('The model is not in the store yet, so it is downloaded', 'Wait; the status shows the progress'),
  ModelNotLookedUp: reason('The model store has not answered yet', 'Wait; if it lasts, check that the disk of the store responds'),
  ProgramNotAsked: reason('The program of the slot is asked for its flags before its first start', 'Wait; this takes seconds'),
  Fetching: reason('The pods of the slot download and verify the model', 'Wait'),
  Sleeping: reason('The slot is idle, and its server sleeps instead of being stopped', 'Send a request: it wakes the server'),
  Waking: reason('The server sleeps and is woken, because a request waits or a warm time has begun', 'Wait'),
  Awake: reason('No server of the slot sleeps', 'Nothing'),
  OtherClients: reason(
    'Clients that do not come through the gateway have requests on the server, which end before it is stopped or put to sleep',
    'Wait; `drain_timeout` limits how long a stop waits',
  ),
  Starting: reason('The workload is being created', 'Wait'),
  Warming: reason('The server runs and loads its model; it does not answer yet', 'Wait; `start_timeout` limits how long this may take'),
  WarmScheduled: reason('The slot is loaded without a request, because `lifecycle.warm` says so', 'Nothing'),
  WarmForecast: reason(
    'The slot is loaded without a request, because `lifecycle.prewarm` is `learned` and requests came at this time on earlier days',
    'Nothing; `prewarm = "never"` turns it off',
  ),
  ProbeNotPassed: reason('The server runs and has not answered its first probe', 'Wait; `start_timeout` limits how long this may take'),
  ProbeDue: reason('A probe checks that the server still answers', 'Nothing'),
  WorkloadNotPresent: reason('The slot should run and has no workload, so one is started', 'Wait'),
  StartedBefore: reason(
    'The slot was started and stopped without an edit, so the next start waits for longer each time',
    'Wait; if it lasts, `svcctl explain <slot>` says what it waits for',
  ),
  RevisionOutdated: reason('What runs belongs to an earlier version of the slot and is being replaced', 'Wait'),
  PreviousServes: reason(
    'The previous version still answers, because the edited one is not ready',
    'Wait, or read the message: it says what the new workload is waiting for',
  ),
  ApplyOutdated: reason('An edit is applied to the running workload without a restart', 'Wait'),
  SwapStarted: reason('Another server is to answer, because the slot was edited', 'Wait'),
  SwapFinished: reason('The server that an edit asked for answers now', 'Nothing'),
  RoomNeeded: reason('The old workload ends to make room for the new one', 'Wait; `swap = "blue-green"` keeps the old one instead'),
  WorkloadsLeaving: reason('A new workload starts when the ones before it have ended', 'Wait; `drain_timeout` limits how long'),
  MemoryNotFree: reason('A new workload starts when draining workloads have released their memory', 'Wait'),
  WorkloadSurplus: reason('The slot has more workloads than it needs, so this one is ended', 'Nothing'),
  SlotRemoved: reason('The slot was removed, so its workloads are ended', 'Nothing'),
  PullNotWanted: reason('No slot needs this image or model any more, so its pull is cancelled', 'Nothing'),
};

/** Something failed while the slot was loading or running. */
export const PROBLEM_REASONS = {
  SpecInvalid: stalling(
    'The text of the slot has a mistake; the last valid version stays in force',
    'Correct the keys that the message names; `svcctl validate -f <file>` shows line and column',
  ),
  RemoteInCluster: stalling('In a cluster, no slot has its server elsewhere', 'Declare the slot on a service that runs on a host'),
  RemoteUnreachable: reason('The server on the other machine does not answer', 'Start it, or correct `remote.url`; it is asked again'),
  RemoteUntrusted: reason(
    'The certificate of the server is not the one to trust, or its address is not public',
    'Read the message; correct `remote.fingerprint`, `remote.ca_file` or `remote.private`',
  ),
  RemoteRefuses: reason('The server refuses the token of this service', 'Correct the file that `remote.credential_file` names'),
  RemoteUnusable: reason('The server answers, but not as an OpenAI-compatible one does', 'Correct `remote.url` as the message says'),
  RemoteLacksModel: reason('The server does not list the model', 'Set `model.default` to a name that the message lists'),
  RemoteLoading: reason('The server on the other machine loads the model', 'Wait'),
  RemoteStalled: reason('The slot on the other machine is stalled', 'Do there what the message says'),
  ProviderMissing: stalling('This installation does not have the provider', 'Set `provider` to another one'),
  ImageUnknown: stalling(
    'The toolbox manifest has no image for this provider and backend',
    'Build the image with `svcctl toolbox build`, or name one in `toolboxes.toml`; in a cluster, build it, push it to a registry, and pin it in `toolboxes` of the chart',
  ),
  ImageMissing: stalling('The image is not on this machine and cannot be pulled from a registry', 'Build it with `svcctl toolbox build`'),
  ImagePullFailed: reason(
    'The image could not be pulled; the pull is tried again',
    'Check the image name, its digest, the credentials for the registry, and the network',
  ),
  ModelMissing: stalling(
    'The model is neither in the store nor in the catalogue, its repository does not have it, or this version cannot serve it',
    'Put its file into the store, or correct `model.default`',
  ),
  ModelUnusable: stalling(
    'The file of the model cannot be served, or is one of another provider',
    'Replace the file that the message names, or correct `provider`',
  ),
  ModelUnsuitable: stalling(
    'The server would accept the model with the settings of the slot, and then answer with nonsense or crash',
    'Change the arguments or the model as the message says',
  ),
  ArgumentsRefused: stalling(
    'The program of the slot does not have a flag of `model.args`, so it is not started; the server that runs goes on',
    'Replace or remove the flag as the message says, or install a build that has it',
  ),
  ModelPullFailed: reason(
    'The model could not be downloaded or verified; the download is tried again and resumes',
    'Check the network and the server that the message names',
  ),
  ModelHashMismatch: stalling(
    'The downloaded file is not the one that the catalogue or its repository describes',
    'Correct the SHA-256, or the file on its server, and restart the slot',
  ),
  ModelSourceRefused: stalling(
    'The server of the model refuses to send it',
    'Correct the address that the message names, or make the file readable; then restart the slot',
  ),
  ModelGated: stalling(
    'The repository of the model wants to know who reads it, or does not exist',
    'Accept its terms in a browser, set `HF_TOKEN` to a token of that account, and restart the service; or correct the name',
  ),
  ModelTooLarge: stalling(
    'No quantisation that the repository of the model offers fits into the memory of this machine',
    'Choose a smaller model, or name the quantisation to try it anyway',
  ),
  LicenseNotAccepted: stalling(
    'The licence of the model restricts what it may be used for, and nobody has accepted it here',
    'Read the licence, then accept it with the command in the message, or list it in `SVC_ACCEPTED_LICENSES`',
  ),
  CatalogueInvalid: stalling('The catalogue entry of the model cannot be used', 'Correct the entry as the message says'),
  ModelStoreReadOnly: stalling('The model store cannot be written to', 'Make the store writable, or put the model there yourself'),
  DiskFull: stalling('The disk has no room for the model', 'Free disk space, then restart the slot'),
  EngineInstallFailed: reason(
    'The embedded engine could not be installed; the installation is tried again',
    'Check the network and the npm registry',
  ),
  InsufficientMemory: stalling(
    'The slot does not fit into memory beside the slots that come before it',
    'Disable another slot, raise `priority`, lower `resources.memory`, or raise `SVC_MEMORY_BUDGET`',
  ),
  PortRangeUsedUp: reason('Every port of the range is taken', 'Widen `SVC_PORT_RANGE`'),
  PortTaken: reason('Another program uses the port; the next port is tried', 'Nothing, or move `SVC_PORT_RANGE`'),
  NameTaken: reason(
    'A container or an object of this name exists already',
    'Wait if it is being removed; otherwise remove what the message names',
  ),
  DeviceMissing: stalling(
    'This machine, or the program on it, does not have the device that the backend needs',
    'Set `backend` to one that the message names, leave it out, or make the device available',
  ),
  DeviceTooSmall: stalling(
    'No GPU of this machine has as much memory in total as the family of the model needs',
    'Choose a smaller model, or use a machine with a larger GPU',
  ),
  ProgramMissing: stalling(
    'Slots run as processes here, and the program of the provider is not on this machine',
    'Install it as the message says, then run `svcctl slot restart <slot>`',
  ),
  StartFailed: stalling('The server could not be started', 'Read the message and `svcctl slot logs <slot>`; correct the slot or the image'),
  StartTimeout: reason('The server did not answer in time after its start', 'Read `svcctl slot logs <slot>`, or raise `start_timeout`'),
  Crashed: reason('The process of the server ended unexpectedly; it is started again', 'Read `svcctl slot logs <slot>`'),
  OutOfMemory: reason(
    'The process of the server was killed because it ran out of memory',
    'Raise `resources.memory`, or choose a smaller model or context',
  ),
  ModelAnswersNonsense: stalling(
    'The server runs, and what its model computes makes no sense: its file may be damaged, or the backend may compute it wrongly; it gets no requests, and is not started a third time',
    'Run `svcctl model verify` to see whether its file is correct; get the model again, or choose another one or another `backend`; then restart the slot',
  ),
  RolledBack: stalling(
    'The last edit brought a model that failed the cases of the slot, did not start, or failed while it was watched, so the text before it is in force again',
    'Read the reason in `svcctl explain <slot>`; correct the text or the cases, or run `svcctl rollout undo slot/<slot>`',
  ),
  EvaluationFailed: stalling(
    'The new model failed the cases of the slot; it stays loaded without requests, as `on_failure` is `hold`, and the old one serves',
    'Read the misses in `svcctl explain <slot>`; correct the text or the cases, or run `svcctl rollout undo slot/<slot>`',
  ),
  Watched: reason(
    'A new model serves, and is watched for the time in `rollout.watch`: if it fails, the text before is in force again',
    'Wait; another edit of the slot is possible at any time',
  ),
  RequestsFailed: reason(
    'A new model failed too many requests while it was watched, so the text before it is in force again',
    'Read `svcctl slot logs <slot>`, and edit the slot',
  ),
  CrashLoop: stalling(
    'The slot has failed too often in a short time and is not started again',
    'Read `svcctl slot logs <slot>`, then edit the slot or run `svcctl slot restart <slot>`',
  ),
  ProbeUnanswered: reason(
    'The server did not answer its last probe at all; after three such probes it is replaced',
    'Wait; if it happens again, read `svcctl slot logs <slot>`',
  ),
  ProbeFailing: reason('The server stopped answering and is replaced', 'Read `svcctl slot logs <slot>` if it happens again'),
  SleepFailed: reason(
    'The server could not be put to sleep, so it is stopped as one that cannot sleep',
    'Read the message; correct or remove `sleep` of the engine if it happens each time',
  ),
  WakeFailed: reason(
    'The server could not be woken, so it is stopped and started again',
    'Read the message and `svcctl slot logs <slot>` if it happens again',
  ),
  MetricUnusable: reason(
    'The server does not report its requests as `drain` of the engine says, so those of other clients are not awaited',
    'Correct `in_flight_metric` or `path` of the engine',
  ),
  Vanished: reason('The workload is gone, and the controller did not stop it; it is started again', 'Find out who removed it'),
  WorkloadAltered: stalling(
    'The workload was altered from outside; with `drift = "repair"` the controller restores it, later and later if it is altered again',
    'Edit the slot instead, and stop the program that the message names; or set `drift` to `ignore`',
  ),
  ModelChanged: reason(
    'The files of the model were replaced, and the server still has the old ones open; with `drift = "repair"` another one replaces it',
    'Wait; with `drift = "warn"`, run `svcctl slot restart <slot>`',
  ),
  StopFailed: reason('The workload could not be stopped; the stop is tried again', 'Read the message if it lasts'),
  RuntimeUnreachable: reason(
    'The runtime (podman or the cluster) does not answer; requests still go to what ran last',
    'Start the runtime again, or correct its address',
  ),
  RuntimeRefused: reason('The runtime rejected a request; it is tried again', 'Read the message, which quotes the runtime'),
  InternalError: stalling('The service failed in a way it should not', 'Report it with the message and the log'),
  Failed: reason('Something failed that has no reason of its own', 'Read the message'),
  Unknown: reason('The reason is not known to this version', 'Read the message'),
};

export function reason(meaning: string, action: string): ReasonFacts {
  return { meaning, action };
}

export function stalling(meaning: string, action: string): ReasonFacts & { readonly stalled: true } {
  return { meaning, action, stalled: true };
}
