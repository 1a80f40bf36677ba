/** Volumes that the pods of a slot get in addition to those of the controller. */
import { z } from 'zod';
import {
  AbsolutePath,
  boundedRecord,
  DataKey,
  FileMode,
  LabelSelector,
  ObjectName,
  PartName,
  Quantity,
  RelativePath,
  ACCESS_MODES,
  optional,
  table,
} from './kube-fields.ts';
import { rulesAt } from '../slot/slot-rules.ts';

const ReadOnly = optional('Whether it is mounted read-only', z.boolean());
const Optional = optional('Whether the pod starts even if it does not exist', z.boolean());
const Items = optional(
  'Keys that become files. Default: all',
  z
    .array(
      z.strictObject({
        key: DataKey.describe('Key of the data'),
        path: RelativePath.describe('Path of the file in the volume'),
        mode: optional('Permissions of the file', FileMode),
      }),
    )
    .max(100),
);
const DefaultMode = optional('Permissions of the files. Default: 0644', FileMode);

const Token = z.strictObject({
  path: RelativePath.describe('Path of the file in the volume'),
  audience: optional('For whom the token is meant. Default: the API server', z.string().max(1024)),
  expirationSeconds: optional('Seconds until the token expires; the kubelet renews it. Default: 3600', z.int().min(600).max(4_294_967_296)),
});

const ProjectedSource = z
  .strictObject({
    secret: table('A Secret', { name: ObjectName.describe('Name of the Secret'), items: Items, optional: Optional }),
    configMap: table('A ConfigMap', { name: ObjectName.describe('Name of the ConfigMap'), items: Items, optional: Optional }),
    serviceAccountToken: optional('A token of the service account of the pods', Token),
  })
  .superRefine(rulesAt('pod.volumes.*.projected.sources.*'));

const ClaimTemplate = z.strictObject({
  spec: z
    .strictObject({
      accessModes: z.array(z.enum(ACCESS_MODES)).min(1).max(4).describe('How the claim may be mounted'),
      storageClassName: optional('Storage class. Default: the default class of the cluster', ObjectName),
      resources: z
        .strictObject({
          requests: z.strictObject({ storage: Quantity.describe('Size of the claim') }).describe('What is requested'),
        })
        .describe('Resources of the claim'),
      selector: optional('Labels of the volumes that may be used', LabelSelector),
    })
    .describe('Spec of the claim'),
});

export const Volume = z
  .strictObject({
    name: PartName.describe('Name of the volume, to which "volumeMounts" refer'),
    secret: table('Files with the values of a Secret', {
      secretName: ObjectName.describe('Name of the Secret'),
      items: Items,
      defaultMode: DefaultMode,
      optional: Optional,
    }),
    configMap: table('Files with the values of a ConfigMap', {
      name: ObjectName.describe('Name of the ConfigMap'),
      items: Items,
      defaultMode: DefaultMode,
      optional: Optional,
    }),
    emptyDir: table('A directory that is empty in each new pod', {
      medium: optional('"Memory": in RAM. Default: on the disk of the node', z.enum(['Memory', 'HugePages'])),
      sizeLimit: optional('Size above which the pod is evicted', Quantity),
    }),
    persistentVolumeClaim: table('An existing claim', { claimName: ObjectName.describe('Name of the claim'), readOnly: ReadOnly }),
    projected: table('Files of several Secrets, ConfigMaps and tokens in one directory', {
      sources: z.array(ProjectedSource).min(1).max(20).describe('What the files are made from'),
      defaultMode: DefaultMode,
    }),
    csi: table('A volume of a CSI driver, such as that of an external store of secrets', {
      driver: z.string().min(1).max(253).describe('Name of the CSI driver'),
      readOnly: ReadOnly,
      fsType: optional('File system, for drivers that create one', z.string().max(63)),
      volumeAttributes: optional('Attributes, which the driver defines', boundedRecord(z.string().max(4096), 32)),
      nodePublishSecretRef: table('Secret for the driver', { name: ObjectName.describe('Name of the Secret') }),
    }),
    ephemeral: table('A claim of its own for each pod, deleted with the pod', { volumeClaimTemplate: ClaimTemplate.describe('The claim') }),
    nfs: table('A directory of an NFS server', {
      server: z.string().min(1).max(253).describe('Host name or address of the server'),
      path: AbsolutePath.describe('Exported directory'),
      readOnly: ReadOnly,
    }),
    hostPath: table('A file or directory of the node. Needs the Pod Security level "privileged"', {
      path: AbsolutePath.describe('Absolute path on the node'),
      type: optional(
        'What must be there. Default: no check',
        z.enum(['DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice']),
      ),
    }),
  })
  .superRefine(rulesAt('pod.volumes.*'));
