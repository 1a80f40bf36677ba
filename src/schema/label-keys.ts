/** Keys of labels and annotations: a name, with or without a domain in front of it. */
export const LABEL_KEY_PATTERN = '^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$';
