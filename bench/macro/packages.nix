# The derivations of a thousand packages that the releases of 2020 and 2026 both have, in one process.
{ np }:
let
  pkgs = import np {
    system = "x86_64-linux";
    config = { };
    overlays = [ ];
  };
  words = text: builtins.filter builtins.isString (builtins.split "[ \n]+" text);
  names = words "MMA OVMF aacgain abc-verifier acd-cli adms aerospike aespipe aewan afio agave aha airsonic alarm-clock-applet
    alfred allegro allegro5 alloy5 almonds alock alure2 amazon-ecr-credential-helper ammonite_2_12 ammonite_2_13
    anki ansifilter anttweakbar apacheKafka apfs-fuse apngasm applgrid apr arduino arguments arkpandora_ttf
    arphic-uming arrow-cpp artha as31 ascii asmfmt at ats2 aubio auctex augeas autofs5 autojump avahi
    aws-c-event-stream aws-iam-authenticator awscli awsweeper axel b2sum backward-cpp bakoma_ttf baobab baresip
    bash_unit bashplotlib bats beanstalkd beep beets behdad-fonts bfr bftools bibata-cursors blockdiag bluez-tools
    blur-effect boehmgc boot boxfort brial brickd brotli bsequencer bspwm buildbot-ui buildkit bundix
    bundler-audit c-blosc cabin cadvisor caffeine-ng cage calaos_installer calc calibre candle cantarell-fonts
    captive-browser cargo-about cargo-expand cargo-flamegraph cargo-geiger cargo-raze casync cccc ccextractor
    ccrypt cdecl cdemu-client cdemu-daemon cdrdao cereal ceres-solver certmgr certstrap cfitsio check checkstyle
    chicken chrome-export cht-sh cimg civetweb cl-launch clang-manpages clang-tools clangMultiStdenv clex click
    clingo clipp cliquer clisp cm256cc cminpack cnstrokeorder colord colord-gtk colordiff colort comfortaa
    conntrack-tools convchain cool-retro-term coq coq2html coq_8_10 coq_8_7 coq_8_8 coq_8_9 coreutils-prefixed
    corosync cpp-netlib cpufrequtils crimson cron crunch cryptpad csvs-to-sqlite ctodo cubicle cue curaengine
    curlie curlpp cutecom cvs2svn cxx-prettyprint d2coding daemontools darkstat das_watchdog dash dateutils dav1d
    davix db db48 db6 dbxml ddcutil ddrescueview ddrutility debian-devscripts debootstrap dehydrated
    desktop-file-utils devmem2 di dialog diod dnsdist dnsrecon docbook-xsl-ns docbook_xml_dtd_42 docker docker-gc
    docopt_cpp dog doitlive dolt doodle drive drumgizmo duff dvdauthor dvgrab ecasound ecdsautils eff eggdbus ekho
    element-desktop elfinfo emplace emscripten enableGCOVInstrumentation encfs enhanced-ctorrent eplot epm eprover
    eschalot essentia-extractor eudev evcxr eventstat evilwm evmdis evtest eweb exfat exiftool expat factor-lang
    fakechroot fakeroot fantasque-sans-mono farstream fasd fastJson fastlane fasttext faust2alqt faust2firefox
    faust2lv2 fbvnc fd fdupes feh ffmpeg_4 fido2luks fig2dev file-rename fileshare firefox-unwrapped flameshot
    flashbench flex flex_2_5_35 flexget flite fltrdr flux flwrap fly fmit folly fomp forktty form fprintd fractal
    freeciv_qt freeswitch fsharp fsmon fusionInventory fxload gambit-unstable game-music-emu gargoyle gauge
    gccStdenvNoLibs gcdemu gdb gentium geoip gerbv getent getopt ghq gibo gifsicle gio-sharp git-cola git-lfs
    git-revise git-secret gitSVN gitaly glava glbinding glew glibcInfo glibc_multi gmime gmu gnome-keysign
    gnome-multi-writer gnome-themes-extra gnome-usage gnomecast gns3-server gnuchess gnugrep gnunet gnuplot
    go-bindata go-check gogui gopro gosec gosmore goxel gperftools gping gpx grabserial grafana
    graphene-hardened-malloc gremlin-console grilo grive2 gromit-mpx grpcurl gsasl gsmlib gss gthumb gtk-doc
    gtk3-x11 guile-lib guitarix gumbo gusb gzdoom h3 haproxy harfbuzzFull hdf5-cpp helm hepmc3 hfsprogs higan
    hiredis-vip hsqldb ht htmlunit-driver htslib httping httplz httpstat httraqt hubicfuse humanfriendly i2c-tools
    i2p i2pd i3 i3blocks-gaps i3lock-pixeled ia-writer-duospace icmake iconnamingutils id3v2 ifuse image-analyzer
    include-what-you-use inconsolata-lgc indicator-application-gtk2 indicator-application-gtk3 instead inteltool
    intercal iomelt ipad_charge iptables-nftables-compat isabelle ispike jack_capture jam jama japa jasmin jbake
    jbigkit jdk11 jdom jing joplin-desktop jpegexiforient jtc jupyter kanif kapacitor kbdlight kcc keepass
    kernelshark keybase khronos-ocl-icd-loader killall kmscon kochi-substitute krakenx krusader kubeprompt ladspaH
    lalezar-fonts lasem lasso lazygit lbzip2 ldb ledger-live-desktop lessc lesspipe leveldb lhasa lib3mf libaosd
    libb64 libbsd libburn libcap_ng libcdio-paranoia libclc libcli libcloudproviders libclxclient libcmis libcsptr
    libctb libcue libcxx libdbusmenu-gtk3 libdeflate libdiscid libdrm libdvdnav_4_2_1 liberastika libertinus
    libevdev libexecinfo libfakekey libfixposix libfprint libgcrypt libgpod libgringotts libgxps libical
    libimobiledevice libindicator-gtk3 libinjection libiodbc libipfix libiptcdata libircclient libisofs
    libjpeg_original liblapack liblockfile libmatroska libmbim libmemcached libmicrohttpd libmpc libmrss libmtp
    libndtypes libnetfilter_cthelper libnfs libnghttp2 libopcodes liboping libopusenc libow libowfat libpeas
    libpfm libreoffice-fresh libscrypt libsemanage libsepol libsieve libsigsegv libsndfile libstrangle libtheora
    libuecc libva-utils libvisio libvolume_id libvterm libwhereami libwnck libx86emu libxklavier libxmlxx libzdb
    lie lief lighthouse linux linux-pam linuxConsoleTools liquid-dsp lit live555 lksctp-tools lld lldb llvm lmdb
    loadlibrary lockfileProgs log4cpp lolcat long-shebang lp_solve lua5_2 luabind luculent luigi lvtk lxpanel
    lzham macopix maestral-gui mailman maim makeself mame mandelbulber mariadb mariadb-connector-c
    material-design-icons matomo mattermost mawk mbuffer mdbtools mediawiki mednafen mednafen-server memcached
    memtest86plus memtier-benchmark mergerfs-tools mesa_glu mfoc michabo micropython minimap2 minizinc mir-qualia
    mitschemeX11 mkcl mkrand mldonkey mlton20130715 mltonHEAD mmv mnist modd modemmanager modsecurity_standalone
    moltengamepad monoDLLFixer monotone mons moodle moon-buggy morph mosml mosquitto mozart2 mpd-small mpeg2dec
    mplayer msbuild mssql_jdbc mtdev mtdutils mtpaint mujs multimarkdown multimon-ng multipart-parser-c mumble
    murmur musl mypaint mypaint-brushes mysql-workbench mysql_jdbc nabi naev nagstamon nailgun nasty nbench ncmpc
    ncurses6 ndstool neovim-remote neovim-unwrapped nethack nethack-x11 netselect nettee networkmanager-l2tp
    networkmanager-openvpn networkmanager_strongswan networkmanagerapplet nginx-sso nginxMainline niff nim
    nitrogen nix-binary-cache nix-pin nix-serve nix-store-gcs-proxy nix-zsh-completions nixbang nixdoc
    nixpkgs-lint nlohmann_json nnn nodejs_latest norwester-font noti notmuch-addrlookup npapi_sdk nsq numlockx
    nv-codec-headers nvidia-docker nvidia-texture-tools nwjs-sdk nyx ocproxy opam open-sans open-vm-tools openafs
    openalSoft openblasCompat opencl-headers opencv4 opendht openfst openjade openjump openrct2 openscenegraph
    openspin openssh openssl opentyrian opn2bankeditor optipng opusTools osinfo-db-tools osm2pgsql oxipng pagemon
    pam_ldap pango papertrail papis par2cmdline paratype-pt-mono partio pass-wayland patchutils paxtest pbzx pcalc
    pdf2odt pdftk peco performous pgf2 pgpkeyserver-lite pgpool phrasendrescher physfs_2 picard picotts pies
    pingus pinpoint pioneer pipewire pixman pkg-config platinum-searcher plib pngquant poetry policycoreutils poly
    polygraph polymake pong3d popfile postscript-lexmark power-calibrate powerstat powertop ppl pptpd pqiv prelink
    premake profile-sync-daemon prometheus-cpp prometheus-statsd-exporter proselint protobuf protolock
    protontricks proverif prow ps ps3netsrv pstoedit ptex pth pulseaudio pulseaudio-dlna pulseaudioFull pulsemixer
    pup puppet-lint pxattr pyrseas pysolfc qMasterPassword qarte qbe qbittorrent qgis qgrep qogir-theme qpdf
    qpid-cpp qprint qrencode qrupdate qsstv qt-box-editor qtox quantumminigolf quassel quattrocento-sans
    quodlibet-xine-full radamsa rapidjson ratpoison rclone-browser rdup reckon recoll redhat-official-fonts
    redis-dump redshift redstore renderdoc rhythmbox rictydiminished-with-firacode riemann rmlint rmount rocket
    rpPPPoE rpcbind rsnapshot rsstail rubyripper runtimeShellPackage rustc s4cmd sampradaya sane-airscan
    sane-backends sbt-extras scalafmt scaleway-cli scantailor-advanced scheherazade scons scour screen
    screen-message screenfetch screenkey scrypt sdate sdl-jstest sdnotify-wrapper selinux-python semver-tool
    serfdom serpent sha1collisiondetection shadowenv shairport-sync shortenPerlShebang sic sierra-gtk-theme
    signal-cli silver-searcher simg2img simgear simplehttp2server skalibs sks skydns slack-cli smack smatch smlnj
    snake4 snapcast soapybladerf sonic source-serif-pro soxr spawn_fcgi spectrojack speedread spin sqlar sqlint
    sqlite-analyzer sqlite-interactive sqlitebrowser squashfsTools srt ssb-patchwork sshoogr ssw stagit stdman
    stella stilo-themes stoken stress-ng strongswanNM subversion subversionClient superlu supervise sutils svaba
    svgbob swagger-codegen sxhkd sympow syncthing-discovery tab taglib taizen taskserver tdrop tecla tegola
    telegraf telepathy-idle teleprompter tengine termtosvg terra terracognita tesseract4 texmaker texworks tflint
    tgt thttpd tie timbreid timidity tinycc tinyxml tio tmux-cssh tmux-xpanes tracefilegen tracefilesim traceroute
    tradcpp traefik trash-cli tree tridactyl-native ttyd u3-tool udocker uefi-firmware-parser ufoai uhd
    uid_wrapper uisp umockdev ums units universal-ctags unixcw unoconv unshield unzip uptimed urbit urlwatch
    usbguard uthash uudeview uvcdynctrl uw-ttyp0 vale varnish60 vcsh verbiste verilator vertcoin victoriametrics
    vifm vmfs-tools vms-empire vnote vorbis-tools vtable-dumper vulkan-headers w3m-full waon wasmtime
    wayland-protocols waylandpp weather-icons wifite2 win-spice winetricks wireless-regdb wireshark wkhtmltopdf
    wlr-randr wlroots wml wxGTK31 x2vnc xaos xautoclick xautomation xcape xcbutilxrm xcpretty xdeltaUnstable
    xdummy xfe xfitter xhtml1 xkblayout-state xkbmon xml2 xmlindent xmlto xmousepasteblock xpilot-ng
    xrandr-invert-colors xsane xscast xsok xsokoban xst yacreader yaft ydiff yeshup yle-dl yubico-pam
    yubikey-personalization z3 zathura zfstools zip zola zsh-you-should-use";
in
map (name: pkgs.${name}.drvPath) names
