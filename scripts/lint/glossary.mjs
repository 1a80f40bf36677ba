/**
 * The words of the project: one term for each concept, and the synonyms that are not used for it. The rule "house/glossary" reads this table, and
 * so do the tests of the documentation; the section "Glossary" of `ARCHITECTURE.md` lists the same terms.
 *
 * A synonym is a string, or an object: `word`; `in: 'names'` where only names (identifiers and files) are checked, because the word is common in
 * sentences; `except` for paths where the word is somebody else's term; `before`: the word that follows in an idiom which is allowed; `use` where
 * something else than the term is to be written. A plural with "s" is covered.
 */
const KUBERNETES_LEASE = [
  'src/cluster/',
  'src/wiring/cluster-world.ts',
  'src/cli/checks/',
  'src/cli/connect/',
  'src/schema/pod/kube-fields.ts',
  'src/schema/settings/settings.ts',
  'src/platform/',
  'test/cluster/',
  'test/live-cluster/',
  'test/support/kube/',
];
/** Pages may explain leases of Kubernetes to those who operate a cluster. */
const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'SCOPE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'docs/',
  'helm/',
  'test/support/README.md',
];

const MEND = ['update in place', 'fix'];

export const GLOSSARY = [
  {
    term: 'action',
    meaning: 'One step of a plan with all its arguments, such as apply, stop, probe or pull. It names the finding that caused it.',
  },
  { term: 'admission', meaning: 'Whether a request may enter a slot now: it is let in, parked or refused.' },
  {
    term: 'allocator',
    meaning:
      'Hands out ports and memory to the slots of one plan. The allocation is a value: each slot is planned with what earlier ones left.',
    not: ['ledger'],
  },
  { term: 'back-off', meaning: 'The delay before the next attempt after a failure: 1 s, doubled each time, at most 5 min.' },
  { term: 'backend', meaning: 'What a model server computes with: the CPU, or a family of devices such as CUDA or Vulkan.' },
  { term: 'board', meaning: 'The snapshot of all slots that each pass publishes. Requests and status pages read it and nothing else.' },
  { term: 'catalogue', meaning: 'The models that the project knows by a short id, with the files they consist of.' },
  { term: 'condition', meaning: 'One aspect of a status, as in Kubernetes: type, status, reason, message, last change.' },
  {
    term: 'crash loop',
    meaning: 'Five crashes, failed probes or start timeouts of a slot within ten minutes. It is not started again until a user acts.',
  },
  {
    term: 'dialect',
    meaning: 'The API whose shapes a path has: how errors are written, and how an answer is translated where it differs from the server’s.',
  },
  {
    term: 'drain',
    meaning: 'To let a workload finish its requests, without new ones, before it is stopped; ends after `drain_timeout`.',
  },
  { term: 'drift', meaning: 'A difference between a running workload and its template that was made from outside.' },
  { term: 'endpoint', meaning: 'Host and port at which one replica of a workload answers.' },
  { term: 'explain', meaning: 'To list the findings behind the present state of a slot, in words.' },
  {
    term: 'failing endpoint',
    meaning: 'An endpoint that did not pass its last probe. It gets no requests while another one passes.',
    not: ['deaf'],
  },
  { term: 'finding', meaning: 'The result of one check: a name for programs and a message for users.' },
  { term: 'generation', meaning: 'Grows by one with each accepted edit of a slot. Failures of earlier generations no longer count.' },
  {
    term: 'hold',
    meaning: "A request's claim on a target. While it is held, its workload is in use; it is released exactly once.",
    not: [{ word: 'lease', except: [...KUBERNETES_LEASE, ...PAGES] }],
  },
  {
    term: 'in-place update',
    meaning: 'Applying a workload again, without replacing it: to repair drift, or after an edit that needs no new revision.',
    not: [
      { word: 'mend', use: MEND },
      { word: 'mended', use: MEND },
      { word: 'mending', use: MEND },
    ],
  },
  { term: 'inspect', meaning: 'To check a plan against the facts, independently of the planner, before it is executed.' },
  { term: 'leader', meaning: 'The replica of the gateway that holds the Lease. It alone executes plans and writes status.' },
  { term: 'lease', meaning: 'The Lease object of Kubernetes: one elects the leader, and each replica reports its traffic in its own.' },
  { term: 'log tail', meaning: 'The last lines that a workload logged, kept with the failure that ended it.', not: ['last words'] },
  { term: 'model record', meaning: 'What a cluster keeps of a model that its pods fetch: its pin, and what its files say.' },
  { term: 'model store', meaning: 'The place where model files are: a directory, or volumes of a cluster.' },
  { term: 'move', meaning: 'A change from one state of a slot to another. A table lists the permitted ones with their causes.' },
  { term: 'orphan', meaning: 'A workload whose slot is no longer declared. It is drained and stopped.' },
  { term: 'parking', meaning: 'Keeping a request waiting until its slot can answer; limited in number and time.' },
  {
    term: 'part',
    meaning: 'The file of a download that is not complete; a journal beside it lists its complete blocks.',
  },
  { term: 'pass', meaning: 'One run of the loop: observe, plan, inspect, execute, report.' },
  {
    term: 'pin',
    meaning: 'What the name of a model was resolved to: the exact files at one commit, with their hashes.',
  },
  {
    term: 'plan',
    meaning: 'What to do next and why, for all slots. A pure function computes it from the desired state, the observed facts and the time.',
  },
  { term: 'pod overlay', meaning: 'What a slot adds to the pods that the controller renders, and changes in them: `pod` of a slot.' },
  { term: 'probe', meaning: 'A request to an endpoint that checks whether the server answers, and with which model.' },
  {
    term: 'profile',
    meaning: 'A set of slot texts under a name, stored on a host, which can take the place of the present ones as a whole.',
  },
  { term: 'provider', meaning: 'A kind of model server. Its contract says how the server is started, probed and addressed.' },
  { term: 'quiet period', meaning: 'How long the slot files must stay unchanged after an edit before they are read.' },
  {
    term: 'readiness check',
    meaning: 'What a provider asks in place of the first probe of a server: whether what its model computes makes sense.',
  },
  {
    term: 'reason',
    meaning: 'A word in CamelCase that classifies a condition, a failure or an event, for programs. The message is for users.',
  },
  {
    term: 'reflector',
    meaning: 'Keeps a copy of all objects of one type in the API server up to date: one list, then watches.',
  },
  {
    term: 'replica',
    meaning: 'One of several equal pods: of a workload, or of the gateway itself.',
  },
  { term: 'resync', meaning: 'A pass that a timer starts, so that a lost event costs time and nothing else.' },
  {
    term: 'revision',
    meaning: 'The hash of everything in a template. A workload with another revision than its template is outdated.',
  },
  {
    term: 'roles',
    meaning:
      'What a slot does with each of its workloads: `serving` gets the requests, `starting` is to get them, `draining` leaves, `unprobed` was found and awaits its first probe.',
    not: ['cast', 'goer'],
  },
  {
    term: 'runtime',
    meaning: 'Runs workloads: podman, plain processes, or a cluster; in memory for tests.',
  },
  { term: 'slot', meaning: 'A named place for one model server, declared in a file or a resource.' },
  { term: 'spec', meaning: 'The parsed text of a slot with every default filled in.' },
  {
    term: 'swap',
    meaning: 'Replacing a workload by one of another revision: beside the old one if both fit, otherwise after the old one has drained.',
  },
  { term: 'target', meaning: 'A workload and one of its endpoints, as the board offers them to requests.' },
  { term: 'template', meaning: 'A workload without its port: everything that follows from the spec, the model and the image.' },
  { term: 'term', meaning: 'The time from becoming the leader to losing the Lease. Work that was begun in a term ends with it.' },
  { term: 'timeline', meaning: 'The history of a slot: one line for each change, with its cause.' },
  { term: 'toolbox', meaning: 'The container image with the server of a provider for one backend.' },
  {
    term: 'tracker',
    meaning: 'What the loop itself remembers between passes: probes, attempts, what it started. In RAM; a restart rebuilds it.',
    not: ['notebook', { word: 'absorb', use: ['record'] }, { word: 'absorbed', use: ['recorded'] }],
  },
  {
    term: 'translation',
    meaning: 'How a provider serves requests whose shape its server does not know: steps that the gateway performs for it.',
  },
  {
    term: 'waiting reason',
    meaning: 'Why a workload does not run yet, as its runtime reports it.',
    not: [{ word: 'trouble', in: 'names' }],
  },
  { term: 'wake', meaning: 'A request for a pass. It carries no data.' },
  { term: 'worker', meaning: 'A process that forwards requests beside that of the controller. It decides nothing about slots.' },
  { term: 'workload', meaning: 'The server of a slot as its runtime runs it: a container, a process or a Deployment.' },
  {
    term: 'workload history',
    meaning: 'What the tracker knows of one workload beyond what its runtime reports.',
    not: ['acquaintance', { word: 'sighting', use: ['observation'] }, { word: 'stranger', in: 'names', use: ['unknown workload'] }],
  },
  {
    term: 'world',
    meaning: 'Everything that differs between a host and a cluster, assembled for one of the two: slots, status, runtime, leadership.',
  },
];

/** Words that are no concept of the project, each with what to write instead. */
export const PLAIN_ENGLISH = [
  { use: ['again'], not: ['anew'] },
  { use: ['must', 'will'], not: ['shall'] },
  { use: ['so that … not', 'because otherwise'], not: ['lest'] },
  { use: ['the caller', 'the user', 'every client'], not: ['whoever'] },
  { use: ['as desired'], not: ['as it shall be'] },
  { use: ['indefinitely'], not: ['for ever'] },
  { use: ['expensive'], not: ['dear'] },
  { use: ['candidate'], not: ['wish', 'wishes'] },
  { use: ['reported', 'published', 'logged'], not: [{ word: 'told', before: 'apart' }, 'retell', 'retold'] },
  { use: ['reports', 'publishes', 'logs'], not: [{ word: 'tells', before: 'apart' }] },
  { use: ['report'], not: [{ word: 'tell', in: 'names' }] },
  { use: ['reported'], not: [{ word: 'said', in: 'names' }] },
  { use: ['is notified of'], not: ['hears of'] },
  { use: ['cache'], not: ['plan memory'] },
  { use: ['dense set', 'member'], not: ['roster', 'seat'] },
  { use: ['batch'], not: [{ word: 'burst', in: 'names', except: ['src/cluster/slots/', 'test/cluster/slots/'] }] },
  { use: ['request body'], not: ['intake'] },
];
