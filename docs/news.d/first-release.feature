The first of Sluice: libsluice, handles and timeouts over a GLib main context with the
shapes of libvirt's virEvent; and sluice-ssh-helper, which joins an ssh connection to
the socket of a local daemon and takes the place of virt-ssh-helper or of nc -U.
