/** Options and arguments that several verbs of `verb-table.ts` share. */
import { HIGHEST_WEIGHT, PRIORITIES, SCOPE_MEANINGS, SCOPES } from '../schema/words/access.ts';
import { BACKENDS, PROVIDER_KIND_NAMES } from '../schema/slot/provider-kinds.ts';
import { CONDITION_TYPES, SLOT_STATES } from '../schema/status/slot-status.ts';
import { OUTPUTS } from './output/output.ts';
import { argument, option, type VerbOption } from './verb.ts';

export const GLOBAL_OPTIONS: readonly VerbOption[] = [
  option('--server <url>', 'URL of the service (default: $SVCCTL_SERVER, $SVC_MANAGEMENT_LISTEN, $SVC_LISTEN or http://127.0.0.1:8080)'),
  option('--token-file <path>', 'File with the API token (default: $SVCCTL_TOKEN or the file in $SVCCTL_TOKEN_FILE)', { path: true }),
  option('--context <name>', 'Kubeconfig context of the cluster (default: $SVCCTL_CONTEXT)'),
  option('-n, --namespace <name>', 'Namespace of the service (default: $SVCCTL_NAMESPACE or from the context)'),
  option('--kubeconfig <path>', 'Path of the kubeconfig (default: $KUBECONFIG or ~/.kube/config)', { path: true }),
];

const output = (...more: readonly string[]): VerbOption =>
  option('-o, --output <format>', 'Output format', { default: 'table', choices: [...OUTPUTS, ...more] });
export const OUTPUT = output();
export const OUTPUT_OR_NAME = output('name');
export const OUTPUT_OR_CSV = output('csv');
export const TIMEOUT = option('--timeout <duration>', 'Time limit, for example 30s or 5m', { default: '5m' });
export const WAIT = [option('--wait', 'Wait until the change has taken effect'), TIMEOUT];
export const FORCE = option('--force', 'Set models even if nothing provides them');
export const FORCE_AND_WAIT = [FORCE, ...WAIT];
export const FILE = option('-f, --file <path>', 'File or directory of slots as TOML, YAML or JSON; "-" for standard input', { path: true });
export const REQUIRED_FILE: VerbOption = { ...FILE, required: true };
export const PRUNE = option('--prune', 'Treat slots that are not in the files as deleted');
export const DRY_RUN = option('--dry-run', 'Print the result without changing anything');
export const APPLY_OPTIONS = [option('--prune', 'Delete slots that are not in the files'), FORCE, DRY_RUN];
export const STORE = option('--store <directory>', 'Model store of this machine (default: $SVC_MODELS_DIR)', { path: true });
export const SECRET = option('--secret <name>', 'Secret with the tokens of a cluster (default: $SVC_TOKENS_SECRET or svc-tokens)');
export const SCOPES_HELP = `Access of the token. ${SCOPES.map((scope) => `${scope}: ${SCOPE_MEANINGS[scope]}`).join('; ')}`;
export const SLOT = argument('<slot>', 'Slot name, also as slot/NAME', { suggestions: 'slots' });
export const NEW_SLOT = [
  option('--model <id>', 'Default model', { required: true, suggestions: 'models' }),
  option('--provider <kind>', 'Provider (default: by slot name, then by model)', { suggestions: PROVIDER_KIND_NAMES }),
  option('--backend <name>', 'Backend (default: the best one for this machine)', { suggestions: BACKENDS }),
  option('--context-length <tokens>', 'Context length in tokens'),
  option('--on-demand', 'Load the slot at its first request'),
  option('--disabled', 'Create the slot without starting it'),
];
export const PROFILE = argument('<profile>', 'Profile name', { suggestions: 'profiles' });
export const LOG_OPTIONS = [
  option('-f, --follow', 'Stream new lines'),
  option('--tail <lines>', 'Number of lines to print from the end', { default: '200' }),
];
const GOALS = [...CONDITION_TYPES.map((type) => `condition=${type}`), ...SLOT_STATES.map((state) => `state=${state}`), 'delete'];
export const GOAL = option('--for <goal>', 'condition=TYPE, condition=TYPE=False, state=STATE or delete', {
  default: 'condition=UpToDate',
  suggestions: GOALS,
});
export const CHECKOUT = option('--checkout', 'Use the configuration in ".svc" of this checkout');
export const PROVIDER = argument('<provider>', 'Provider kind', { choices: PROVIDER_KIND_NAMES });

/** Limits of a token. With `token edit`, "none" removes one. */
export const LIMITS: readonly VerbOption[] = [
  option('--models <names>', 'Slots, model ids and aliases that the token may use, separated by commas (default: all)'),
  option('--requests-per-minute <count>', 'Most requests in any minute (default: no limit)'),
  option('--tokens-per-minute <count>', 'Most tokens of prompts and answers in any minute (default: no limit)'),
  option('--tokens-per-day <count>', 'Most tokens of prompts and answers in any 24 hours (default: no limit)'),
  option('--max-in-flight <count>', 'Most requests at the same time (default: no limit)'),
  option('--max-output-tokens <count>', 'Most tokens of one answer (default: no limit)'),
  option('--weight <number>', `Share where requests wait, from 1 to ${HIGHEST_WEIGHT} (default: 1)`),
  option('--priority <class>', 'Whose requests are served first where requests wait (default: normal)', {
    choices: [...PRIORITIES, 'none'],
  }),
];
