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
} from './kube-fields.ts';
import { rulesAt } from '../slot/slot-rules.ts';

const ReadOnly = z.boolean().optional().describe('Whether it is mounted read-only');
const Optional = z.boolean().optional().describe('Whether the pod starts even if it does not exist');
const Items = z
  .array(
    z.strictObject({
      key: DataKey.describe('Key of the data'),
      path: RelativePath.describe('Path of the file in the volume'),
      mode: FileMode.optional().describe('Permissions of the file'),
    }),
  )
  .max(100)
  .optional()
  .describe('Keys that become files. Default: all');
const DefaultMode = FileMode.optional().describe('Permissions of the files. Default: 0644');

const Token = z.strictObject({
  path: RelativePath.describe('Path of the file in the volume'),
  audience: z.string().max(1024).optional().describe('For whom the token is meant. Default: the API server'),
  expirationSeconds: z
    .int()
    .min(600)
    .max(4_294_967_296)
    .optional()
    .describe('Seconds until the token expires; the kubelet renews it. Default: 3600'),
});

const ProjectedSource = z
  .strictObject({
    secret: z
      .strictObject({ name: ObjectName.describe('Name of the Secret'), items: Items, optional: Optional })
      .optional()
      .describe('A Secret'),
    configMap: z
      .strictObject({ name: ObjectName.describe('Name of the ConfigMap'), items: Items, optional: Optional })
      .optional()
      .describe('A ConfigMap'),
    serviceAccountToken: Token.optional().describe('A token of the service account of the pods'),
  })
  .superRefine(rulesAt('pod.volumes.*.projected.sources.*'));

const ClaimTemplate = z.strictObject({
  spec: z
    .strictObject({
      accessModes: z.array(z.enum(ACCESS_MODES)).min(1).max(4).describe('How the claim may be mounted'),
      storageClassName: ObjectName.optional().describe('Storage class. Default: the default class of the cluster'),
      resources: z
        .strictObject({
          requests: z.strictObject({ storage: Quantity.describe('Size of the claim') }).describe('What is requested'),
        })
        .describe('Resources of the claim'),
      selector: LabelSelector.optional().describe('Labels of the volumes that may be used'),
    })
    .describe('Spec of the claim'),
});

export const Volume = z
  .strictObject({
    name: PartName.describe('Name of the volume, to which "volumeMounts" refer'),
    secret: z
      .strictObject({ secretName: ObjectName.describe('Name of the Secret'), items: Items, defaultMode: DefaultMode, optional: Optional })
      .optional()
      .describe('Files with the values of a Secret'),
    configMap: z
      .strictObject({ name: ObjectName.describe('Name of the ConfigMap'), items: Items, defaultMode: DefaultMode, optional: Optional })
      .optional()
      .describe('Files with the values of a ConfigMap'),
    emptyDir: z
      .strictObject({
        medium: z.enum(['Memory', 'HugePages']).optional().describe('"Memory": in RAM. Default: on the disk of the node'),
        sizeLimit: Quantity.optional().describe('Size above which the pod is evicted'),
      })
      .optional()
      .describe('A directory that is empty in each new pod'),
    persistentVolumeClaim: z
      .strictObject({ claimName: ObjectName.describe('Name of the claim'), readOnly: ReadOnly })
      .optional()
      .describe('An existing claim'),
    projected: z
      .strictObject({ sources: z.array(ProjectedSource).min(1).max(20).describe('What the files are made from'), defaultMode: DefaultMode })
      .optional()
      .describe('Files of several Secrets, ConfigMaps and tokens in one directory'),
    csi: z
      .strictObject({
        driver: z.string().min(1).max(253).describe('Name of the CSI driver'),
        readOnly: ReadOnly,
        fsType: z.string().max(63).optional().describe('File system, for drivers that create one'),
        volumeAttributes: boundedRecord(z.string().max(4096), 32).optional().describe('Attributes, which the driver defines'),
        nodePublishSecretRef: z
          .strictObject({ name: ObjectName.describe('Name of the Secret') })
          .optional()
          .describe('Secret for the driver'),
      })
      .optional()
      .describe('A volume of a CSI driver, such as that of an external store of secrets'),
    ephemeral: z
      .strictObject({ volumeClaimTemplate: ClaimTemplate.describe('The claim') })
      .optional()
      .describe('A claim of its own for each pod, deleted with the pod'),
    nfs: z
      .strictObject({
        server: z.string().min(1).max(253).describe('Host name or address of the server'),
        path: AbsolutePath.describe('Exported directory'),
        readOnly: ReadOnly,
      })
      .optional()
      .describe('A directory of an NFS server'),
    hostPath: z
      .strictObject({
        path: AbsolutePath.describe('Absolute path on the node'),
        type: z
          .enum(['DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice'])
          .optional()
          .describe('What must be there. Default: no check'),
      })
      .optional()
      .describe('A file or directory of the node. Needs the Pod Security level "privileged"'),
  })
  .superRefine(rulesAt('pod.volumes.*'));
